"""What a pool's own history says of a fault class: kept with the node states, and the same however it is cut."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import accumulate

import pytest

from assay.decide.state import decision_and_fault_entries
from assay.decide.state.fault_weeks import WEEKS_KEPT, FaultWeeks
from assay.decide.state.node_projection import NODE_STATES, NodeStateProjection
from assay.model.entries.faults import FaultClearedEntry

XID = "gpu.xid.79"
SERVING = ["production"]


@pytest.fixture
def small(paper):
    """Return a pool of four nodes; its first week is over, since weeks count from their first entry."""
    for number in range(4):
        paper.add(f"n{number}")
    paper.later(days=7)
    return paper


def pass_week(paper):
    """Let a week go by, at whose end an entry comes."""
    paper.later(days=7)
    paper.say("hold", "n3")


def see(paper, weeks=0):
    """Return the history of the class until so many weeks from now."""
    return paper.chronicle.fault_weeks.find_history("a", XID, SERVING, paper.now + timedelta(weeks=weeks))


def end(paper, name, ident):
    paper.write(decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(ident, "gone"), paper.now))


def test_a_node_counts_once_a_week_and_once_while_its_fault_is_open(small):
    for name, gap_days in (("n0", 1), ("n1", 8)):
        for _ in range(3):
            ident = small.fault(name, XID)
            end(small, name, ident)
            small.later(days=gap_days)
    for _ in range(3):
        small.fault("n2", XID, "gpu1")
        small.later(days=9)
    pass_week(small)
    assert see(small).nodes == 1 + 3 + 1


def test_what_must_be_seen_often_counts_once_it_was(small):
    for severity in ("informational", "degraded", "degraded"):
        small.fault("n0", XID, id="one", severity=severity)
        small.later(hours=1)
    pass_week(small)
    assert see(small).nodes == 1


def test_only_nodes_that_served_count_and_only_whole_weeks(small):
    small.add("n4", "triage")
    small.fault("n4", XID)
    small.fault("n0", XID)
    small.fault("n1", "gpu.xid.13")  # a job's own
    assert see(small) == (0, 0, 0), "this week is not over"
    pass_week(small)
    assert see(small) == (1, 4, 1)
    assert small.chronicle.fault_weeks.find_history("b", XID, SERVING, small.now) == (0, 0, 0)
    assert small.chronicle.fault_weeks.find_history("a", "gpu.xid.13", SERVING, small.now).nodes == 0


def test_weeks_in_which_nothing_was_written_count_and_older_ones_than_a_year_do_not(small):
    small.fault("n0", XID)
    for _ in range(5):
        small.later(weeks=6)
        small.say("hold", "n3")
    assert see(small) == (1, 4 * 30, 30)
    for _ in range(5):
        small.later(weeks=8)
        small.say("hold", "n3")
    assert see(small) == (0, 4 * 52, 52)
    assert len(small.chronicle.fault_weeks.weeks) <= WEEKS_KEPT


@pytest.mark.parametrize("weeks", [500, -500, 9, -9, 5])
def test_a_clock_that_was_wrong_for_a_while_teaches_nothing(small, weeks):
    """It must not make weeks with faults into weeks without."""
    for _ in range(20):
        small.fault("n0", XID)
        pass_week(small)
    small.later(weeks=weeks)
    small.fault("n1", XID)
    small.later(weeks=-weeks)
    pass_week(small)
    assert see(small).weeks == 0
    pass_week(small)
    assert (see(small).weeks, small.chronicle.fault_weeks.weeks.keys() & {0}) == (1, set())


def test_what_is_written_at_the_turn_of_a_week_comes_in_any_order(small):
    pass_week(small)
    small.later(seconds=-8 * 86_400 + 10)
    small.fault("n0", XID)
    small.later(days=9)
    pass_week(small)
    assert see(small).nodes == 1


def test_it_is_the_same_however_it_is_cut_and_what_was_read_stays_as_it_is(small):
    for number in range(12):
        ident = small.fault(f"n{number % 4}", XID)
        small.later(days=2)
        end(small, f"n{number % 4}", ident)
    entries = list(small.log.values())
    parts = [entries[start : start + 5] for start in range(0, len(entries), 5)]
    read = list(accumulate(parts, lambda state, part: NODE_STATES.fold(part, state), initial=NODE_STATES.initial()))
    known = [projected.fault_weeks.encode() for projected in read]
    assert read[-1] == small.chronicle
    for projected, upto in zip(read, range(0, len(entries) + 5, 5), strict=True):
        again = NODE_STATES.fold(entries[:upto]).fault_weeks
        assert (projected.fault_weeks, projected.fault_weeks.encode()) == (again, again.encode())
    assert [projected.fault_weeks.encode() for projected in read] == known
    stored = json.loads(json.dumps(known[-1]))
    assert FaultWeeks.decode(stored) == small.chronicle.fault_weeks
    assert FaultWeeks.decode([]) == NodeStateProjection().fault_weeks
