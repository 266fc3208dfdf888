"""Silence past its deadline is a fault of its own; it is never health, and never held against a fleet at once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from assay.decide.faults.telemetry_silence import TelemetrySource, judge_silence
from assay.decide.state import decision_and_fault_entries

MINUTE = timedelta(minutes=1)


@pytest.fixture
def paper(new_paper):
    """A pool of twelve nodes in production, for a day."""
    paper = new_paper()
    for number in range(12):
        paper.add(f"n{number}")
    paper.later(hours=24)
    return paper


def ear(paper, node="n0", source="agent", silent=10.0, listened=600.0) -> TelemetrySource:
    """Return a source that has been silent for so many minutes, and is listened to for so many."""
    heard = paper.now - silent * MINUTE
    return TelemetrySource(node, source, heard, max(heard, paper.now - listened * MINUTE))


def look(paper, *ears: TelemetrySource):
    """Judge the silence of these sources, and write it down."""
    found = judge_silence(paper.situation(), paper.catalog, ears)
    for lost in found.faults:
        paper.write(decision_and_fault_entries.make_fault_entry(lost, paper.now))
    for end in found.clearances:
        paper.write(decision_and_fault_entries.make_cleared_entry("n0", end, paper.now))
    return found


def test_a_silent_agent_is_told_after_its_deadline_and_not_before(paper):
    assert look(paper, ear(paper, silent=4.9)).faults == ()
    (lost,) = look(paper, ear(paper, silent=5.1)).faults
    assert (lost.fault_class, lost.subject, lost.severity) == ("telemetry.lost", "a/n0/agent", "informational")
    assert "its agent was last heard at" in lost.detail


def test_readings_have_a_deadline_of_their_own(paper):
    assert look(paper, ear(paper, source="probe", silent=59)).faults == ()
    assert [one.subject for one in look(paper, ear(paper, source="bmc", silent=61)).faults] == ["a/n0/bmc"]


def test_it_is_told_once_while_it_lasts(paper):
    assert look(paper, ear(paper)).faults
    paper.later(minutes=30)
    assert look(paper, ear(paper, silent=40)).faults == ()


def test_it_moves_no_node(paper):
    look(paper, ear(paper))
    assert {one.timing for one in paper.step()} == {"record"}
    paper.later(hours=100)
    assert paper.step() == []


def test_it_ends_when_the_node_is_heard_again_and_a_second_silence_is_another(paper):
    (first,) = look(paper, ear(paper)).faults
    paper.later(minutes=3)
    (end,) = look(paper, ear(paper, silent=0)).clearances
    assert (end.fault, paper.story("n0").faults[0].is_open) == (first.id, False)
    assert "was heard again" in end.reason
    paper.later(minutes=30)
    (second,) = look(paper, ear(paper, silent=20)).faults
    assert second.id != first.id


def test_one_source_that_is_heard_does_not_end_the_silence_of_another(paper):
    look(paper, ear(paper), ear(paper, source="probe", silent=90))
    paper.later(minutes=1)
    (end,) = look(paper, ear(paper, silent=0), ear(paper, source="probe", silent=91)).clearances
    assert [known.subject for known in paper.story("n0").faults if known.is_open] == ["a/n0/probe"]
    assert "agent" in end.reason


def test_nothing_counts_from_before_anybody_listened(paper):
    assert look(paper, ear(paper, silent=3000, listened=3)).faults == ()


def test_a_node_that_was_never_heard_is_silent_too(paper):
    (lost,) = look(paper, TelemetrySource("n0", "agent", None, paper.now - 10 * MINUTE)).faults
    assert "was never heard" in lost.detail


def test_a_node_that_has_just_come_into_its_state_has_its_time(paper):
    paper.add("fresh")
    assert look(paper, ear(paper, "fresh")).faults == ()


@pytest.mark.parametrize("state", ["onboard", "triage", "debug", "rma", "retired"])
def test_where_nobody_looks_at_a_node_its_silence_is_none(paper, state):
    paper.add("away", state)
    paper.later(hours=10)
    assert look(paper, ear(paper, "away")).faults == ()


def test_a_pool_that_falls_silent_together_is_told_as_one_and_held_against_nobody(paper):
    found = look(paper, *(ear(paper, f"n{number}", silent=7) for number in range(5)), *heard(paper, 5, 12))
    assert found.faults == ()
    (wave,) = found.waves
    assert (wave.pool, wave.source, len(wave.nodes), wave.total) == ("a", "agent", 5, 12)


def test_a_few_silent_nodes_are_no_wave(paper):
    found = look(paper, *(ear(paper, f"n{number}", silent=7) for number in range(3)), *heard(paper, 3, 12))
    assert (len(found.faults), found.waves) == (3, ())


def test_after_a_wave_those_that_stay_silent_are_told(paper):
    look(paper, *(ear(paper, f"n{number}", silent=7) for number in range(12)))
    paper.later(minutes=10)
    found = look(paper, ear(paper, "n0", silent=17), *heard(paper, 1, 12))
    assert ([lost.node for lost in found.faults], found.waves) == (["n0"], ())


def test_nodes_that_fell_silent_one_by_one_and_were_told_make_no_wave(paper):
    for number in range(8):
        ears = [ear(paper, f"n{gone}", silent=60 * (number + 1 - gone)) for gone in range(number + 1)]
        found = look(paper, *ears, *heard(paper, number + 1, 12))
        assert (len(found.faults), found.waves) == (1, ())
        paper.later(hours=1)


def heard(paper, first: int, last: int) -> list[TelemetrySource]:
    return [ear(paper, f"n{number}", silent=0) for number in range(first, last)]


@limits(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["agent", "probe", "bmc"]), st.floats(0, 500)), max_size=30)
)
def test_whatever_is_silent_no_node_is_ever_moved_by_it(new_paper, silent):
    paper = new_paper()
    for number in range(12):
        paper.add(f"n{number}")
    paper.later(hours=24)
    for number, source, minutes in silent:
        look(paper, ear(paper, f"n{number}", source, minutes))
    assert {one.timing for one in paper.step()} <= {"record"}
