"""What the ledger says of a burn-in: progress, coverage by serial number, and whether the node may leave its state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assay.decide.moves.required_checks import describe_missing_burn_in, find_failed_burn_in
from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.model.entries import effects as burn
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import NodeEnrolledEntry, TransitionEntry
from assay.model.facts import to_json
from assay.model.specs.burn_in import BurnInWindow, PartWork
from assay.tell.views.burn_in_status import describe_burn_in_of_stay, format_burn_in, make_burn_in_status

SERIALS = {"gpu0": "777", "gpu1": "778", "nvme0": "d1", "P1-A1": "m1"}


def window(
    hours: float, phase: str = "heat", log: str = "a", line: int = 1, boot: str = "b1", **parts: PartWork
) -> Any:
    plain = to_json(BurnInWindow(hours, phase, parts, hard={"gpu0": {"links": 18}}))
    return burn.BurnInWindowEntry("id", log, line, plain, boot, SERIALS)


def project(*contents: EntryContent) -> NodeState:
    """Return the node after it was enrolled, came into `test`, and these entries, half an hour apart."""
    start = [NodeEnrolledEntry("p", "zap"), TransitionEntry("zap", "test", "d1")]
    entries = [
        replace(
            content.make_entry(str(number), f"2026-11-23T{number // 2:02}:{30 * (number % 2):02}:00+00:00", "n1"),
            seq=number,
        )
        for number, content in enumerate([*start, *contents], 1)
    ]
    return project_node_states(entries)["n1"]


STARTED = burn.BurnInStartedEntry("id", "day", 24)
BURNED = PartWork(10, 10, 3600, {"gpu0": 3600.0, "gpu1": 1800.0})


def test_progress_is_told_with_an_estimate() -> None:
    state = project(STARTED, window(7.5, "heat-cycles", gpu_burn=BURNED))
    told = "burn-in 7.5 of 24 h, phase heat-cycles, ends about 23 Nov 18:30 UTC"
    assert describe_burn_in_of_stay(state) == told
    assert list(format_burn_in(state)) == [told, "gpu_burn ran 0.5 h on gpu1", "gpu_burn ran 1.0 h on gpu0"]


def test_coverage_is_counted_by_serial_number_and_survives_reboots() -> None:
    whole = PartWork(1, 1, 1800, {"node": 1800.0})
    state = project(STARTED, window(1, gpu_burn=BURNED), window(2, log="z", boot="b2", memory=whole, gpu_burn=BURNED))
    plain = make_burn_in_status(state)
    assert plain is not None
    assert plain.reboots == 1
    assert {(one.part, one.serial, one.load, one.hours) for one in plain.coverage} == {
        ("gpu0", "777", "gpu_burn", 2.0),
        ("gpu1", "778", "gpu_burn", 1.0),
        ("P1-A1", "m1", "memory", 0.5),
    }


def test_entries_of_another_burn_in_and_after_the_end_change_nothing() -> None:
    ended = burn.BurnInEndedEntry("id", "done", "", 24.0, ("gpu5: warmer",), {"gpu0": 51_000.0})
    state = project(STARTED, window(24, gpu_burn=BURNED), ended)
    late = [replace(window(30), burn_in="other"), window(31), burn.BurnInEndedEntry("id", "failed", "late", 31.0)]
    assert replace(project(STARTED, window(24, gpu_burn=BURNED), ended, *late).burn_in) == state.burn_in
    assert state.burn_in is not None
    assert state.burn_in.describe() == "burn-in done after 24.0 of 24 h"
    assert "drifts: gpu5: warmer" in format_burn_in(state)


def test_a_held_node_has_more_hours_before_it() -> None:
    state = project(STARTED, window(24), burn.BurnInHeldEntry("id", 12, ("gpu5: warmer",)))
    assert describe_burn_in_of_stay(state).startswith("burn-in 24.0 of 36 h, phase heat, ends about 23 Nov 14:00")


class View:
    """A node and its policy, as far as the proof of a burn-in looks at them."""

    def __init__(self, state: NodeState, names: list[str]) -> None:
        self.node_state, self.burn_in = state, names

    def policy_state_of(self, _: Any) -> Any:
        return self


@pytest.mark.parametrize(
    ("contents", "lacks"),
    [
        ((), "no burn-in has begun in this stay"),
        ((STARTED,), "burn-in 0.0 of 24 h, phase not begun"),
        ((STARTED, burn.BurnInEndedEntry("id", "done", "", 24)), ""),
        ((STARTED, burn.BurnInEndedEntry("id", "none", "for no such node", 0)), ""),
        (
            (STARTED, burn.BurnInEndedEntry("id", "incomplete", "heat: memory never ran to its end", 24)),
            "burn-in incomplete",
        ),
        ((STARTED, burn.BurnInEndedEntry("id", "stopped", "", 3)), "burn-in stopped"),
        ((STARTED, burn.BurnInEndedEntry("id", "failed", "gpu5 is wrong", 3)), "burn-in failed"),
        (
            (
                STARTED,
                burn.BurnInEndedEntry("id", "done", "", 24),
                TransitionEntry("test", "zap", ""),
                TransitionEntry("zap", "test", ""),
            ),
            "no burn-in has begun in this stay",
        ),
    ],
)
def test_only_a_burn_in_of_this_stay_that_ended_well_lets_a_node_go(contents: Any, lacks: str) -> None:
    view: Any = View(project(*contents), ["day"])
    found = describe_missing_burn_in(view, view)
    assert found.startswith(lacks)
    assert bool(found) == bool(lacks)
    assert bool(find_failed_burn_in(view, view)) == ("failed" in lacks)
    without: Any = View(project(*contents), [])
    assert describe_missing_burn_in(without, without) == "", "a policy without burn-in asks for none"
    assert find_failed_burn_in(without, without) is None
