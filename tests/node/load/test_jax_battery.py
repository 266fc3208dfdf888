"""The battery's program for GPUs, on eight devices that a CPU stands for."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from assay.node.load.catalog import list_tests
from assay.node.load.engine import list_made_devices
from assay.node.load.numpy_engine import NumpyEngine
from assay.node.load.run import RunPlan, run_battery
from assay.node.load.run_lines import RunLines
from assay.node.load.unit_tests import SMALL
from tests.node.load.jax_needed import needs_jax, run_load

pytestmark = [pytest.mark.slow(minutes=3), needs_jax]

EXACT = ("cast.", "gemm.int8", "cumsum.int32", "sort.", "modulo.", "bincount.", "scatter.", "gather.", "memory.")
"""What is exact in any order, so that engines agree too."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return a run of all tests, with the lowest bit of one product wrong on device 5."""
    cache = tmp_path_factory.mktemp("cache")
    return run_load("battery", "--seeds", "1", "--plant", "device=5,test=gemm.float32.ones,bit=0", cache=cache)


def test_one_wrong_bit_is_seen_on_its_device_and_all_else_agrees(whole: list[dict[str, Any]]) -> None:
    units = {line["test"]: line["digests"] for line in whole if "digests" in line}
    odd = {test: digests for test, digests in units.items() if len(set(digests)) > 1}
    assert list(odd) == ["gemm.float32.ones"]
    (digests,) = odd.values()
    assert [place for place, digest in enumerate(digests) if digest != digests[0]] == [5]


def test_what_is_left_out_is_told(whole: list[dict[str, Any]]) -> None:
    run = whole[0]["run"]
    assert (run["backend"], len(run["devices"])) == ("cpu", 8)
    assert set(run["without"].values()) == {"a CPU has no TF32 units"}
    ran = {line["test"] for line in whole if "digests" in line}
    assert ran | set(run["without"]) == {test.name for test in list_tests(SMALL)}


def test_what_is_exact_in_any_order_is_the_same_in_numpy(whole: list[dict[str, Any]]) -> None:
    output, engine = io.StringIO(), NumpyEngine(list_made_devices(1, (), (), ""))
    chosen = [test for test in list_tests(SMALL) if test.name.startswith(EXACT) and not engine.find_lack(test)]
    run_battery(engine, chosen, RunPlan(60, 0, 1, ()), RunLines(output))
    mine = {
        line["test"]: line["digests"][0] for line in map(json.loads, output.getvalue().splitlines()) if "test" in line
    }
    theirs = {line["test"]: line["digests"][0] for line in whole if "test" in line}
    assert len(mine) >= 20
    assert mine == {test: theirs[test] for test in mine}


def test_a_permuted_run_gives_the_same_digests_and_the_fault_moves_with_its_device(tmp_path: Path) -> None:
    tests = ("--tests", "collective", "copy", "softmax", "step.train")
    plain = run_load("battery", "--seeds", "1", *tests, cache=tmp_path)
    moved = run_load(
        "battery", "--seeds", "1", *tests, "--order", "7,3,1,0,5,2,4,6",
        "--plant", "device=0,test=softmax,bit=9", cache=tmp_path,
    )  # fmt: skip
    assert [device["index"] for device in moved[0]["run"]["devices"]] == [7, 3, 1, 0, 5, 2, 4, 6]
    for before, after in zip(plain[1:-1], moved[1:-1], strict=True):
        wrong = [place for place, digest in enumerate(after["digests"]) if digest != before["digests"][0]]
        assert wrong == ([3] if after["test"] == "softmax.float32" else [])


def test_with_one_device_collectives_are_left_out_and_told(tmp_path: Path) -> None:
    lines = run_load("battery", "--seeds", "1", "--devices", "1", "--tests", "collective", "gather", cache=tmp_path)
    assert set(lines[0]["run"]["without"].values()) == {"there is one device"}
    assert lines[-1] == {"end": "done", "units": 1}


def test_an_order_that_is_none_is_refused(tmp_path: Path) -> None:
    assert run_load("battery", "--order", "0,0,1", cache=tmp_path, code=2) == []
