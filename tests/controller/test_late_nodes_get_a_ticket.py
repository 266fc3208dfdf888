"""A node that is in its state for too long is a ticket, once; where its state has one anyway, that is enough."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.tickets.desired_tickets import TICKET_CAUSES, list_desired_tickets
from assay.decide.moves.decide import decide
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.model.entries.effects import BurnInEndedEntry, BurnInStartedEntry

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def fleet():
    return load_fleet(ROOT)


def tickets(fleet, state, hours, *contents):
    """Return the titles of the tickets that are wanted after a node has been so long in a state."""
    return [ticket.title for ticket in list_tickets(fleet, state, hours, *contents)]


def list_tickets(fleet, state, hours, *contents):
    policy = next(iter(fleet.policies.values()))
    log = [decision_and_fault_entries.make_enrolled_entry("n0001", "h100-a", state, START)]
    log += [content.make_entry(content.kind, START.isoformat(), "n0001") for content in contents]
    now = START + timedelta(hours=hours)
    for _ in range(2):
        view = NodeSnapshot(fleet.nodes["n0001"], fleet.profile_of("n0001"), project_node_states(log)["n0001"])
        situation = FleetSnapshot(now, policy, (view,))
        for decision in decide(situation):
            log += decision_and_fault_entries.make_decision_entries(policy, view, decision, now)
    return list_desired_tickets(situation, TICKET_CAUSES.fold(log), {})


@pytest.mark.parametrize(("state", "hours"), [("production-reboot", 2), ("test", 48)])
def test_a_node_that_is_late_is_a_ticket_and_one_in_time_is_none(fleet, state, hours):
    assert tickets(fleet, state, hours) == []
    assert tickets(fleet, state, hours + 0.1) == [f"{state} takes more than {hours} h: n0001"]


def test_a_burn_in_that_proves_nothing_is_a_ticket_with_the_words_of_the_tool_and_how_to_begin_anew(fleet):
    words = "battery gave no result in its first 2 runs: absent: assay-load is not installed"
    ended = BurnInEndedEntry("b", "incomplete", words, 0.2)
    (ticket,) = list_tickets(fleet, "test", 1, BurnInStartedEntry("b", "day", 24.0), ended)
    assert ticket.title == "the burn-in of n0001 proves nothing"
    assert ticket.seen == f"burn-in incomplete after 0.2 of 24 h: {words}"
    assert ticket.steps.splitlines()[-1] == "then let it begin anew: assay move n0001 zap --reason '…'"
    assert tickets(fleet, "test", 1, BurnInStartedEntry("b", "day", 24.0)) == []
