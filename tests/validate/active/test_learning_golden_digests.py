"""Golden digests come from nodes that agree: whatever else is asked for is refused, with the reason."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
import yaml

from assay.model.errors import AssayError
from assay.model.reading import failed, value
from assay.model.specs.golden_digests import GoldenDigests
from assay.validate.active.golden import find_golden, format_golden_spec, learn_golden, pack_digests
from assay.validate.active.unit_results import LoadRun
from tests.validate.active.battery_runs import H100, KEY, make_run

UNITS = {"gemm": {"0": "12345678", "1": "1e234567", "2": "9f3a01bc", "9": "00000000"}, "exp": {"0": "22222222"}}


def other(units: dict[str, Any] | None = None, **said: Any) -> LoadRun:
    return make_run(units or UNITS, said=said)


@pytest.fixture
def golden() -> GoldenDigests:
    key, digests = learn_golden({"n1": other(), "n2": other()})
    text = format_golden_spec(key, ["n1", "n2"], digests, date(2026, 11, 23))
    return GoldenDigests.model_validate(yaml.safe_load(text))


def test_a_draft_reads_back_as_what_the_nodes_computed(golden: GoldenDigests) -> None:
    assert dict(golden.list_digests()) == {
        (test, seed): digest for test, seeds in UNITS.items() for seed, digest in seeds.items()
    }
    assert golden.computed_by.gpu == H100
    assert golden.name == "nvidia-h100-80gb-hbm3-580.95.05-jax-0.10.2-abababab"
    assert golden.digests["gemm"] == {"0": ["12345678", "1e234567", "9f3a01bc"], "9": ["00000000"]}


def test_a_long_run_of_seeds_is_broken_into_lines() -> None:
    digests = {("gemm", str(seed)): f"{seed:08x}" for seed in range(100)}
    key, _ = learn_golden({"n1": other(), "n2": other()})
    text = format_golden_spec(key, ["n1", "n2"], digests, date(2026, 11, 23))
    assert max(map(len, text.splitlines())) <= 120
    assert yaml.safe_load(text)["digests"] == pack_digests(digests)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({"n1": other()}, "need two nodes that agree"),
        ({"n1": other(), "n2": other(driver=value("999.1"))}, "n1 and n2 did not compute with the same"),
        ({"n1": other(), "n2": other({"gemm": {"0": "ffffffff"}})}, "disagree in 1 of 1 units, first in gemm, seed 0"),
        ({"n1": other(), "n2": other({"gemm": {"77": "ffffffff"}})}, "no test and seed in common"),
        ({"n1": other(), "n2": other(ended=failed("killed after 3 units"))}, "n2: the run did not end: killed after 3"),
        ({"n1": other(), "n2": other({"gemm": {}})}, "n2: nothing was computed"),
        ({"n1": other(), "n2": other({"gemm": {"0": ["12345678"] * 7 + ["ffffffff"]}})}, "n2: GPU-7 computed 1 unit"),
        ({"n1": other(), "n2": other({"gemm": {"0": ["12345678"] * 7 + [None]}})}, "n2: no result from GPU-7"),
        ({"n1": other(), "n2": other({"gemm": {"0": ["12345678"] * 4 + ["ffffffff"] * 4}})}, "n2: it cannot be told"),
        ({"n1": other(), "n2": other(program=value(""))}, "n2: the run names no single GPU, engine and program"),
    ],
)  # fmt: skip
def test_what_is_no_ground_for_golden_digests_is_refused(runs: dict[str, LoadRun], said: str) -> None:
    with pytest.raises(AssayError, match=said):
        learn_golden(runs)


def test_golden_digests_hold_for_their_own_key_only(golden: GoldenDigests) -> None:
    found, why = find_golden(other(), [golden])
    assert (found["gemm", "9"], why) == ("00000000", "")
    for name in KEY:
        found, why = find_golden(other(**{name: value("another")}), [golden])
        assert not found
        assert why.startswith("there are no golden digests for ")
    found, why = find_golden(other({"gemm": {"500": "11111111"}}), [golden])
    assert not found
    assert "none of the run's tests and seeds" in why


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": ["n1", "n1"]}, "names a node twice"),
        ({"nodes": ["n1"]}, "at least 2 items"),
        ({"digests": {"gemm": {"0": ["11111111"] * 3, "2": ["22222222"]}}}, "give a seed twice"),
        ({"digests": {"gemm": {"0": [12345678]}}}, "valid string"),
        ({"digests": {"gemm": {"01": ["11111111"]}}}, "match pattern"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(
    golden: GoldenDigests, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        GoldenDigests.model_validate(golden.model_dump(exclude_defaults=True) | change)
