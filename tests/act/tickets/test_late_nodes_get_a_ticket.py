"""A node that is in its state for too long is a ticket, once; where its state has one anyway, that is enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assay.act.tickets.desired_tickets import TICKET_CAUSES, list_desired_tickets
from assay.act.tickets.ticket_updates import ClosingProofs
from assay.decide.moves.decide import decide
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.model.entries.effects import BurnInEndedEntry, BurnInStartedEntry
from assay.model.entries.node_entries import TransitionEntry
from assay.model.ledger_entry import LedgerEntry
from tests.support.places import ROOT

START = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def fleet():
    return load_fleet(ROOT)


def tickets(fleet, state, hours, *contents, more=()):
    """Return the titles of the tickets that are wanted after a node has been so long in a state."""
    return [ticket.title for ticket in list_tickets(fleet, state, hours, *contents, more=more)]


def list_tickets(fleet, state, hours, *contents, names=("n0001",), more=()):
    policy = next(iter(fleet.policies.values()))
    log = [decision_and_fault_entries.make_enrolled_entry(name, "h100-a", state, START) for name in names]
    log += [
        content.make_entry(f"{content.kind}-{name}", START.isoformat(), name) for name in names for content in contents
    ]
    log += more
    now = START + timedelta(hours=hours)
    for _ in range(2):
        states = project_node_states(log)
        views = {name: NodeSnapshot(fleet.nodes[name], fleet.profile_of(name), states[name]) for name in names}
        situation = FleetSnapshot(now, policy, tuple(views.values()))
        for decision in decide(situation):
            log += decision_and_fault_entries.make_decision_entries(policy, views[decision.node], decision, now)
    return list_desired_tickets(situation, TICKET_CAUSES.fold(log), {})


@pytest.mark.parametrize(("state", "hours"), [("production-reboot", 2), ("test", 48)])
def test_a_node_that_is_late_is_a_ticket_and_one_in_time_is_none(fleet, state, hours):
    assert tickets(fleet, state, hours) == []
    assert tickets(fleet, state, hours + 0.1) == [f"{state} takes more than {hours} h: n0001"]


def test_an_act_that_failed_in_a_state_that_waits_for_it_is_a_ticket_until_it_is_tried_again(fleet):
    entered = TransitionEntry("zap", "test", "d")
    facts = {"effect": "e", "action": "burn-in", "decision": "d", "facts": {}}
    begun = LedgerEntry("e", START.isoformat(), "effect.intent", "n0001", {**facts, "before": {}, "params": {}})
    words = "assay-load is not installed"
    failed = LedgerEntry("f", START.isoformat(), "effect.failed", "n0001", {**facts, "reason": words})
    (ticket,) = list_tickets(fleet, "zap", 1, entered, more=[begun, failed])
    assert (ticket.title, ticket.seen) == ("burn-in failed, and test waits for it: n0001", words)
    assert ticket.steps.endswith("then it is tried again: assay certify n0001 --reason '…'")
    assert tickets(fleet, "zap", 1, entered, more=[begun]) == []
    certified = LedgerEntry(
        "c", (START + timedelta(hours=1)).isoformat(), "certified", "n0001", {"who": "ann", "reason": "it is"}
    )
    assert tickets(fleet, "zap", 2, entered, more=[begun, failed, certified]) == []


def test_a_burn_in_that_proves_nothing_is_a_ticket_and_says_how_to_begin_anew(fleet):
    words = "collectives could not tell whether it is good: the pair was bad"
    ended = BurnInEndedEntry("b", "incomplete", words, 24)
    (ticket,) = list_tickets(fleet, "test", 1, BurnInStartedEntry("b", "day", 24.0), ended)
    assert ticket.title == "the burn-in of n0001 proves nothing"
    assert ticket.seen == f"on n0001\nburn-in incomplete after 24.0 of 24 h: {words}"
    assert ticket.steps.splitlines()[-1] == "then let it begin anew: assay move n0001 zap --reason '…'"
    assert tickets(fleet, "test", 1, BurnInStartedEntry("b", "day", 24.0)) == []


def test_a_part_without_any_result_is_one_ticket_of_its_plan_for_the_pool_with_the_words_of_the_tool(fleet):
    words = "battery gave no result in its first 2 runs: absent: assay-load is not installed"
    ended = BurnInEndedEntry("b", "incomplete", words, 0.2, part="battery")
    names = ["n0001", "n0002", "n0003", "n0004"]
    (ticket,) = list_tickets(fleet, "test", 1, BurnInStartedEntry("b", "day", 24.0), ended, names=names)
    assert ticket.title == "battery of the BurnIn day gives no result in pool h100-a"
    assert ticket.seen == f"on n0001..n0004\nburn-in incomplete after 0.2 of 24 h: {words}"
    assert [place.device for place in ticket.places] == names
    assert "the BurnIn day" in ticket.steps


def test_a_ticket_about_a_stay_closes_when_the_node_has_left_it_and_never_before(fleet):
    words = "collectives could not tell whether it is good: the pair was bad"
    began = BurnInStartedEntry("b", "day", 24.0)
    (late,) = list_tickets(fleet, "test", 50, began)
    (unproved,) = list_tickets(fleet, "test", 50, began, BurnInEndedEntry("b", "incomplete", words, 24))
    assert (late.key.partition("/")[0], unproved.key.partition("/")[0]) == ("late", "burn-in")
    log = [decision_and_fault_entries.make_enrolled_entry("n0001", "h100-a", "test", START)]
    assert find_proof(fleet, log, late) == ""
    left = TransitionEntry("test", "zap", "d").make_entry("left", (START + timedelta(hours=51)).isoformat(), "n0001")
    assert find_proof(fleet, [*log, left], late).startswith("n0001 went to zap")
    assert find_proof(fleet, [*log, left], unproved) == "no node waits for it any more"


def test_a_ticket_about_a_machine_closes_when_another_one_is_the_node(fleet):
    checks = "suites/discovered/test_machine.py::test_serial_at_the_bmc[h100-a/n0001]"
    (late,) = list_tickets(fleet, "test", 50, BurnInStartedEntry("b", "day", 24.0))
    other = replace(late, key="incident/n0001/f1", verify=checks)
    log = [decision_and_fault_entries.make_enrolled_entry("n0001", "h100-a", "triage", START, "S1")]
    assert find_proof(fleet, log, other) == "", "a check that no other state runs would prove it"
    now = START + timedelta(hours=2)
    log.append(decision_and_fault_entries.make_enrolled_entry("n0001", "h100-a", "onboard", now, "S2"))
    assert find_proof(fleet, log, other).startswith("another machine is the node since 2026")


def find_proof(fleet, log, ticket):
    view = NodeSnapshot(fleet.nodes["n0001"], fleet.profile_of("n0001"), project_node_states(log)["n0001"])
    return ClosingProofs({"n0001": view}, {}, {}).find_proof(ticket, START.isoformat())
