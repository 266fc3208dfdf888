"""Lines of a node become windows, coverage and verdicts. What gave no result counts as no result."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.act.ingest.burn_ins import find_wrong_result, list_voted_runs
from assay.model.errors import AssayError
from assay.model.facts import from_json, to_json
from assay.model.specs.burn_in import BurnIn, BurnInWindow, PartWork
from assay.node.burnin.supervisor import is_swung_low
from assay.validate.active.burn_in_windows import (
    HardCounters,
    Line,
    compute_shift,
    cut_windows,
    find_missing_work,
    find_verdict,
    has_ended,
    list_expected_work,
    list_power_groups,
    make_node_plan,
)
from tests.validate.active.written_lines import Journal

WINDOW_S = 900.0


def test_a_window_ends_with_its_time_and_the_open_one_is_read_again(journal: Any) -> None:
    journal.burn(300).burn(800).burn(950)
    (window,) = cut_windows(journal.lines, WINDOW_S)
    assert (window.window.hours, window.last_line) == (round(800 / 3600, 4), 2)
    assert window.window.parts["gpu_burn"] == PartWork(2, 2, 120.0, {"gpu0": 120.0, "gpu1": 120.0})


def test_a_window_never_spans_two_phases_and_the_end_closes_the_last(journal: Any) -> None:
    journal.burn(100, "heat").burn(200, "again").add(200, "again", end="done")
    assert [cut.window.phase for cut in cut_windows(journal.lines, WINDOW_S)] == ["heat", "again"]


@given(st.lists(st.tuples(st.floats(1, 400), st.booleans()), min_size=1, max_size=60), st.integers(1, 59))
def test_however_the_lines_are_read_nothing_is_counted_twice_or_lost(steps: list[tuple[float, bool]], at: int) -> None:
    journal, t = Journal(), 0.0
    for seconds, ok in steps:
        t += seconds
        journal.burn(t, oks=(ok, True), s=seconds)
    journal.add(t, "heat", end="done")
    early = cut_windows(journal.lines[:at], WINDOW_S)
    cursor = early[-1].last_line if early else 0
    late = cut_windows(journal.lines[cursor:], WINDOW_S)
    assert [*early, *late] == cut_windows(journal.lines, WINDOW_S)
    assert sum(cut.window.parts["gpu_burn"].units for cut in [*early, *late]) == len(steps)


def test_medians_and_counters_of_a_window(journal: Any) -> None:
    for t, heat in ((10, 60.0), (20, 61.0), (30, 99.0)):
        journal.watch(t, temperature=heat, power=700.0, corrected=t, uncorrected=0)
    journal.add(30, "heat", end="done")
    window = cut_windows(journal.lines, WINDOW_S)[0].window
    assert window.gpus["gpu0"] == {"temperature": 61.0, "power": 700.0}
    assert (window.corrected, window.hard) == ({"gpu0": 30}, {"gpu0": {"uncorrected": 0}})
    assert from_json(BurnInWindow, json.loads(json.dumps(to_json(window)))) == window


@pytest.mark.parametrize(
    "result",
    [
        {"absent": "gpu_burn is not installed"},
        {"failed": "killed"},
        {"devices": {"failed": "no verdict"}},
        {"devices": {"0": {"failed": "no work"}}},
        {"started_at": {"value": "2026-11-23T08:00:00"}},
        {},
    ],
)
def test_a_run_without_a_value_is_no_result(journal: Any, result: dict[str, Any]) -> None:
    journal.add(60, "heat", unit="gpu_burn", s=60, result=result).add(60, "heat", end="done")
    work = cut_windows(journal.lines, WINDOW_S)[0].window.parts["gpu_burn"]
    assert (work.units, work.results, work.subjects) == (1, 0, {})
    assert work.reason


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ({"uncorrected": 0}, {"uncorrected": 1}, "gpu0: uncorrected memory errors went from 0 to 1 under load"),
        ({"remapped": 2}, {"remapped": 3}, "gpu0: remapped rows of memory went from 2 to 3 under load"),
        ({"links": 18}, {"links": 17}, "gpu0: links that are up went from 18 to 17 under load"),
        ({"links": 17}, {"links": 18}, ""),
        ({"uncorrected": 5}, {"uncorrected": 0}, ""),
        ({}, {"uncorrected": 7}, ""),
    ],
)
def test_hard_counters_end_a_burn_in_when_they_get_worse(
    journal: Any, first: dict[str, int], second: dict[str, int], says: str
) -> None:
    journal.watch(10, **first).watch(20, **second)
    assert read_reason(journal.lines, {}) == says
    assert read_reason(journal.lines[1:], {"gpu0": first}) == says, "also across two readings of the journal"


def read_reason(lines: list[Line], known: HardCounters) -> str:
    verdict = find_verdict(lines, known)
    return verdict.reason if verdict else ""


def test_wrong_results_end_a_burn_in_and_missing_ones_do_not(journal: Any) -> None:
    assert read_reason(journal.burn(60, oks=(True, False)).lines, {}) == "gpu1: gpu_burn computed wrong results"
    others = [
        {"n": 1, "t": 1, "p": "heat", "unit": "all_reduce", "s": 1, "result": {"wrong": {"value": 3}}},
        {"n": 2, "t": 2, "p": "heat", "unit": "memory", "s": 1, "result": {"errors": {"failed": "killed"}}},
        {"n": 3, "t": 3, "p": "heat", "unit": "shared_storage", "s": 1, "result": {"intact": {"value": True}}},
    ]
    spoilt = {**others[2], "result": {"intact": {"value": False}}}
    assert read_reason([spoilt, others[2]], {}) == "shared_storage read back other data than it had written"
    assert read_reason(others, {}) == "all_reduce found 3 wrong values"
    assert read_reason(others[1:], {}) == ""


def test_what_gave_too_few_results_is_named(day: BurnIn) -> None:
    expected = [("heat", "gpu_burn"), ("heat", "memory"), ("again", "gpu_burn")]
    work = {
        "heat": {"gpu_burn": PartWork(10, 8, 600, {"gpu0": 480.0}, "failed: killed")},
        "again": {"gpu_burn": PartWork(10, 10, 600, {"gpu0": 600.0, "gpu1": 300.0})},
    }
    assert find_missing_work(day, expected, work) == [
        "heat: gpu_burn gave a result in 8 of 10 runs (failed: killed)",
        "heat: memory never ran to its end",
        "again: gpu_burn gave too few results for gpu1",
    ]


def test_the_plan_holds_all_phases_and_a_drifting_node_gets_one_more(day: BurnIn) -> None:
    plan, held = make_node_plan(day, "id"), make_node_plan(day, "id", held=True)
    assert sum(phase["seconds"] for phase in plan["phases"]) == 24 * 3600
    assert held["phases"][:-1] == plan["phases"]
    assert (held["phases"][-1]["name"], held["phases"][-1]["seconds"]) == ("held-longer", 12 * 3600)
    assert ("together", "memory") in list_expected_work(day)


def site_of(racks: Sequence[str], each: int = 4, watts: float | None = 10_000) -> Any:
    """A site with as many nodes in each rack, beside a node of another site."""
    low = {"node_power_low": SimpleNamespace(value=1_000)}
    limits = {} if watts is None else {"node_power": SimpleNamespace(value=watts), **low}
    placed = [("s1", rack, f"{rack}-{number}") for rack in racks for number in range(each)]
    nodes = {
        name: SimpleNamespace(name=name, site=site, rack=rack, spec="h100")
        for site, rack, name in [*placed, ("s2", "a1", "other")]
    }
    return SimpleNamespace(nodes=nodes, spec_of=lambda name: SimpleNamespace(limits=limits))


def find_largest_step_kw(fleet: Any, spec: BurnIn, under_test: Collection[str]) -> float:
    """Return by how much the power of nodes that swing at 1 Hz changes at one moment, as their supervisors swing it."""
    shifts = [compute_shift(fleet, node, spec) for name, node in fleet.nodes.items() if name in under_test]
    totals = [9.0 * sum(not is_swung_low(at / 512, 1.0, 0.5, shift) for shift in shifts) for at in range(513)]
    return max(abs(after - before) for before, after in pairwise(totals))


@pytest.mark.parametrize("racks", [["a1"], ["a1", "a2", "b1", "b2"], ["a1", "a2", "a3", "b1", "b2"]])
def test_the_step_of_a_site_holds_its_limit_whichever_racks_are_under_test(day: BurnIn, racks: list[str]) -> None:
    fleet, limited = site_of(racks), day.model_copy(update={"step_kw": 20.0})
    for rack in (*racks, ""):
        under_test = [name for name, node in fleet.nodes.items() if node.site == "s1" and node.rack.startswith(rack)]
        assert find_largest_step_kw(fleet, limited, under_test) <= 20, "two nodes of 9 kW at a time"
        assert find_largest_step_kw(fleet, day, under_test) <= 36, "without a limit, a rack"
    planted = limited.model_copy(update={"stagger": "none"})
    assert find_largest_step_kw(fleet, planted, list(fleet.nodes)) >= 36, "this would have been seen"


def test_a_rack_or_a_row_swings_in_step_and_the_next_one_against_it(day: BurnIn) -> None:
    fleet, by_row = site_of(["a1", "a2", "b1"]), day.model_copy(update={"stagger": "row"})
    row = [f"a{rack}-{number}" for rack in (1, 2) for number in range(4)]
    assert list_power_groups(fleet, "s1", by_row) == [row, [f"b1-{number}" for number in range(4)]]
    assert {compute_shift(fleet, fleet.nodes[name], by_row) for name in row} == {0}
    assert compute_shift(fleet, fleet.nodes["b1-0"], by_row) == 0.5
    assert [compute_shift(fleet, fleet.nodes[f"{rack}-0"], day) for rack in ("a1", "a2", "b1")] == [0, 0.5, 0.25]
    assert compute_shift(fleet, fleet.nodes["b1-0"], day.model_copy(update={"stagger": "none"})) == 0


@pytest.mark.parametrize(
    ("watts", "says"), [(10_000, "changes its power by 9.0 kW, and step_kw is 5"), (None, "no limit node_power")]
)
def test_a_limit_that_cannot_be_held_is_refused(day: BurnIn, watts: float | None, says: str) -> None:
    fleet = site_of(["a1"], watts=watts)
    with pytest.raises(AssayError, match=says):
        compute_shift(fleet, fleet.nodes["a1-0"], day.model_copy(update={"step_kw": 5.0}))
    with pytest.raises(ValueError, match="`step_kw` needs `stagger: rack`"):
        BurnIn.model_validate({**day.model_dump(exclude_unset=True), "step_kw": 500, "stagger": "none"})


def battery(*digests: Any) -> dict[str, Any]:
    devices = [
        {"index": index, "uuid": f"GPU-{index}", "kind": "H100"}
        for index in range(len(digests[0]) if isinstance(digests[0], list) else 5)
    ]
    return {
        "started_at": {"value": "2026-11-23T08:00:00+00:00"},
        "devices": {"value": devices},
        "ended": {"value": "done"},
        "units": {"value": {"gemm.float32.ones": {str(seed): said for seed, said in enumerate(digests)}}},
    }


def test_every_run_of_the_battery_is_voted_on_not_only_the_newest(journal: Any) -> None:
    right = "9f3a01bc"
    for t, said in ((60, right), (120, [right, right, "00000001", right, right]), (180, right)):
        journal.add(t, "heat", unit="battery", s=60, result=battery(right, said))
    verdict = find_wrong_result(list_voted_runs(journal.lines))
    assert verdict is not None
    assert verdict.reason.startswith("gpu2: battery gave 1 wrong units of 2")
    assert "outvoted by gpu0, gpu1, gpu3, gpu4" in verdict.reason
    assert (verdict.fault, verdict.part) == ("gpu.sdc", "gpu2")
    assert find_wrong_result(list_voted_runs(journal.lines[:1])) is None


def test_a_tie_names_no_gpu_until_one_is_told_and_a_battery_that_did_not_run_is_no_verdict(journal: Any) -> None:
    journal.add(60, "heat", unit="battery", s=60, result={"absent": "assay-load is not installed"})
    assert find_wrong_result(list_voted_runs(journal.lines)) is None
    journal.add(120, "heat", unit="battery", s=60, result=battery(["a" * 8, "a" * 8, "b" * 8, "b" * 8]))
    tie = "battery: gemm.float32.ones, seed 0: a tie: 2 to 2 of 4 GPUs"
    assert find_wrong_result(list_voted_runs(journal.lines)) == (tie, "gpu.sdc.suspect", "")
    journal.add(180, "heat", unit="battery", s=60, result=battery(["a" * 8, "a" * 8, "b" * 8, "a" * 8, "a" * 8]))
    verdict = find_wrong_result(list_voted_runs(journal.lines))
    assert verdict is not None
    assert verdict.fault == "gpu.sdc", "a guilty GPU before suspects"


def test_a_gpu_that_gives_no_digest_has_no_result(journal: Any) -> None:
    journal.add(60, "heat", unit="battery", s=60, result=battery(["a" * 8, None, "a" * 8, "a" * 8]))
    journal.add(60, "heat", end="done")
    work = cut_windows(journal.lines, WINDOW_S)[0].window.parts["battery"]
    assert sorted(work.subjects) == ["gpu0", "gpu2", "gpu3"]


def test_an_end_that_a_longer_plan_went_on_after_is_no_end(journal: Any) -> None:
    journal.burn(100, "again").add(100, "again", end="done")
    assert has_ended(journal.lines)
    journal.add(100, "again", run={"boot": "b"}).burn(160, "held-longer")
    assert not has_ended(journal.lines)
    assert [cut.window.phase for cut in cut_windows(journal.lines, WINDOW_S)] == ["again"], "the other is not over"
