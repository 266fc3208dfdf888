"""How long absences from service take: repairs that still last count too, and few cases support no estimate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from assay.decide.state.node_state import NodeState, TransitionRecord
from assay.decide.state.service_absences import ServiceAbsence, estimate_absence, list_absences

START = datetime(2026, 11, 1, tzinfo=UTC)
NOW = START + timedelta(days=10)


def move(hours: float, origin: str, target: str) -> TransitionRecord:
    return TransitionRecord((START + timedelta(hours=hours)).isoformat(), origin, target)


def absence(hours: float | None, *states: str) -> ServiceAbsence:
    """An absence of so many hours, through these states; None for one that still lasts."""
    path = ["production", *(states or ("reboot",))]
    moves = tuple(move(0, origin, target) for origin, target in pairwise(path))
    return ServiceAbsence(START, moves, None if hours is None else START + timedelta(hours=hours))


def estimate(cases, first="reboot", present="reboot"):
    return estimate_absence(cases, first, present, {"retired"}, NOW)


def test_absences_begin_with_service_and_end_with_it():
    moves = (
        move(0, "test", "production"),
        move(5, "production", "reboot"),
        move(6, "reboot", "draining"),
        move(9, "draining", "production"),
        move(20, "production", "reboot"),
    )
    state = NodeState("n1", "a", "reboot", "", "", "", "", transitions=moves)
    first, second = list_absences(state, {"production"})
    assert (first.first_state, first.states) == ("reboot", {"reboot", "draining"})
    assert first.ended_at == START + timedelta(hours=9)
    assert second.began_at == START + timedelta(hours=20)
    assert second.ended_at is None


@pytest.mark.parametrize("known", [0, 1, 4])
def test_fewer_than_five_returns_support_nothing(known):
    assert estimate([absence(1)] * known + [absence(None)] * 20) is None


def test_half_and_nine_of_ten_of_those_that_came_back():
    found = estimate([absence(hours) for hours in (5, 1, 4, 2, 3, 6, 7, 8, 9, 10)])
    assert found is not None
    assert (found.cases, found.half, found.most) == (10, timedelta(hours=5), timedelta(hours=9))


def test_those_that_are_still_out_make_it_longer():
    found = estimate([*(absence(hours) for hours in (1, 2, 3, 4, 5)), *[absence(None)] * 5])
    assert found is not None
    assert (found.half, found.most) == (timedelta(hours=5), None)
    found = estimate([*(absence(hours) for hours in (1, 2, 3, 4, 5)), *[absence(None)] * 6])
    assert found is not None
    assert (found.half, found.most) == (None, None)


def test_one_that_has_just_begun_says_little_and_one_that_is_gone_much():
    known = [absence(hours) for hours in (24 * 11, 24 * 12, 24 * 13, 24 * 14, 24 * 15)]
    begun = estimate([*known, *[absence(None)] * 5])
    assert begun is not None
    assert begun.half == timedelta(days=13)
    gone = estimate([*known, *[absence(None, "reboot", "retired")] * 5])
    assert gone is not None
    assert gone.half == timedelta(days=15)


def test_only_cases_that_began_alike_and_came_as_far_count():
    reboots, repairs = [absence(1)] * 9, [absence(90, "reboot", "triage")] * 5
    other = [absence(50, "draining", "triage")] * 9
    found = estimate([*reboots, *repairs, *other], present="triage")
    assert found is not None
    assert (found.cases, found.half) == (5, timedelta(hours=90))
    assert estimate([*reboots, *other], present="triage") is None
