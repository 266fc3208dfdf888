"""The battery on devices that compute wrong: the numpy engine, small sizes, faults as arguments of the same program."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from assay.node.load.catalog import choose_tests, list_tests
from assay.node.load.digests import sum_digest
from assay.node.load.engine import list_made_devices
from assay.node.load.numpy_engine import NumpyEngine
from assay.node.load.planted_faults import HEALTHY, find_fault_words, parse_plant
from assay.node.load.run import RunPlan, run_battery
from assay.node.load.run_lines import RunLines
from assay.node.load.unit_tests import SMALL

Lines = list[dict[str, Any]]


def run(*plants: str, tests: str = "", devices: int = 4, seeds: int = 1, order: tuple[int, ...] = ()) -> Lines:
    """Return the lines of units."""
    engine = NumpyEngine(list_made_devices(devices, order, (), ""))
    able = [test for test in list_tests(SMALL, devices) if not engine.find_lack(test)]
    chosen = choose_tests(able, [tests] if tests else [])
    output = io.StringIO()
    run_battery(engine, chosen, RunPlan(60, 0, seeds, [parse_plant(text) for text in plants]), RunLines(output))
    return [json.loads(line) for line in output.getvalue().splitlines()]


def odd_devices(lines: Lines) -> dict[str, list[int]]:
    """Return the tests in which devices differ from the first one, and which do."""
    units = [line for line in lines if "digests" in line]
    differing = {
        unit["test"]: [place for place, digest in enumerate(unit["digests"]) if digest != unit["digests"][0]]
        for unit in units
    }
    return {test: places for test, places in differing.items() if places}


def test_healthy_devices_agree_in_every_test_and_two_runs_give_the_same_digests() -> None:
    first, second = ({line["test"]: line["digests"] for line in run() if "digests" in line} for _ in range(2))
    assert first == second
    assert all(len(set(digests)) == 1 for digests in first.values())
    sent = {name for name in first if name.startswith(("copy.", "collective."))}
    assert len({first[name][0] for name in first.keys() - sent}) == len(first) - len(sent), "none computes as another"
    assert len({first[name][0] for name in sent}) == 1, "all transfers of a seed have one payload"
    assert len(sent) == 4 + 3 * 4 + 1 + 4 + 1


def test_the_lowest_bit_of_one_result_is_seen_on_its_device_and_in_its_test_only() -> None:
    assert odd_devices(run("device=2,test=gemm.float32.ones,bit=0")) == {"gemm.float32.ones": [2]}


@pytest.mark.parametrize("kind", ["flip", "burst"])
def test_a_fault_of_each_shape_is_seen_in_every_test(kind: str) -> None:
    lines = run(f"device=1,kind={kind},bit=30")
    tests = {line["test"] for line in lines if "digests" in line}
    assert set(odd_devices(lines)) == tests
    assert all(places == [1] for places in odd_devices(lines).values())


def test_not_a_number_is_seen_in_products() -> None:
    assert list(odd_devices(run("device=1,kind=nan", tests="gemm.*.ones")).values()) == [[1]] * 5


def test_a_permanent_fault_gives_the_same_wrong_digest_each_time() -> None:
    planted = "device=3,kind=permanent,bit=29"
    first, second = ([line.get("digests") for line in run(planted, tests="gemm.float64")] for _ in range(2))
    assert first == second
    assert any(digests and digests[3] != digests[0] for digests in first)


def test_a_fault_of_one_unit_in_five_hits_about_so_many() -> None:
    lines = run("device=0,rate=0.2,bit=9", tests="modulo.uint32", seeds=200)
    hit = sum(unit["digests"][0] != unit["digests"][1] for unit in lines if "digests" in unit)
    assert 20 <= hit <= 60


def test_the_digests_follow_the_order_of_the_run_and_the_fault_its_device() -> None:
    assert odd_devices(run("device=2,bit=4", tests="gather", order=(3, 1, 0, 2))) == {"gather.float32": [3]}


def test_a_device_that_vanishes_gives_no_digest_from_then_on() -> None:
    lines = run("device=1,kind=vanish,from=3", tests="gemm.float32")
    assert [line["digests"][1] is None for line in lines if "digests" in line] == [
        False,
        False,
        False,
        True,
        True,
        True,
    ]
    assert lines[-1] == {"end": "done", "units": 6}


def test_a_device_that_hangs_stops_the_run_and_is_named() -> None:
    lines = run("device=1,kind=hang,from=2", tests="gemm.float32")
    assert lines[-2]["digests"][1] is None
    assert lines[-1] == {"end": "stopped", "units": 3, "reason": "device 1 gave nothing for gemm.float32.huge"}


def test_a_healthy_device_has_masks_that_change_nothing() -> None:
    assert find_fault_words([parse_plant("device=5,bit=3")], 4, "gemm.float32.ones", 0) == HEALTHY


@pytest.mark.parametrize(
    ("text", "says"),
    [("bit=3", "device=N"), ("device=1,hue=red", "device=N"), ("device=1,kind=melt", "kind is one of"),
     ("device=one", "invalid literal"), ("device=1,bit=40", "bit is below 32"), ("device=1,rate=7", "rate from")],
)  # fmt: skip
def test_a_plant_that_makes_no_sense_says_what_to_write(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_plant(text)


def test_a_pattern_that_names_no_test_is_refused() -> None:
    with pytest.raises(ValueError, match="no test is called so"):
        choose_tests(list_tests(SMALL), ["gemn"])


def test_flips_of_one_bit_at_equal_distances_never_cancel_in_the_digest() -> None:
    """With a sum of weighted words they cancel in about 3 of 100 cases: both signs of the same differences."""
    import numpy as np

    chance = np.random.default_rng(15)
    for trial in range(500):
        words = chance.integers(0, 2**32, 2048, dtype=np.uint32)
        spoilt, start = words.copy(), int(chance.integers(0, 1024))
        spoilt[start : start + 8 * 32 : 32] ^= np.uint32(1 << (trial % 32))
        assert sum_digest(np, spoilt) != sum_digest(np, words)


def test_swapped_words_are_seen() -> None:
    import numpy as np

    words = np.arange(100, dtype=np.uint32)
    assert sum_digest(np, words) != sum_digest(np, words[::-1].copy())
