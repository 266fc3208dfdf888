"""What one commit made fail on several nodes is one ticket, which names the commit, and not the air of their rack."""

from __future__ import annotations

from dataclasses import replace

from assay.act.tickets.desired_tickets import TechnicianNotes, list_desired_tickets
from assay.act.tickets.ticket_moves import TicketMoveFinder
from assay.decide.moves.circuit_breaker import find_series
from assay.decide.state.fleet_snapshot import COMMIT

NODES = ("n1", "n2", "n3", "n4")
DRIFT, INLET = "host.config.drift", "inlet.out-of-range"


def fail(paper, fault_class: str, **other) -> set[str]:
    """Let a check fail on each node now; return the ids of its faults."""
    faults = set[str]()
    for name in NODES:
        if name not in paper.nodes:
            paper.add(name)
        paper.judge(name, "seatrial", "fail")
        check = paper.checks["seatrial"].id
        known = paper.outcomes[name][check]
        paper.outcomes[name][check] = replace(known, outcome=replace(known.outcome, fault=fault_class))
        faults.add(paper.fault(name, fault_class, **{"marks": {"check": paper.now.isoformat()}} | other))
    return faults


def tickets(paper, causes, commit="20796ca9d040", **more):
    situation = paper.situation(find_commit=lambda _: commit, **more)
    return list_desired_tickets(situation, causes, {}, TechnicianNotes(catalog=paper.catalog)), situation


def test_drift_that_a_commit_made_is_one_ticket_that_names_it(paper):
    faults = fail(paper, DRIFT)
    alone, _ = tickets(paper, faults, commit="")
    assert len(alone) == 4, "somebody changed each of them"
    (ticket,), situation = tickets(paper, faults)
    assert ticket.title.startswith("Bring the nodes to what git asks, or take it back")
    assert ticket.title.endswith(": commit 20796ca9d040")
    assert [place.device for place in ticket.places] == [*NODES]
    assert TicketMoveFinder(situation).find(alone[0]).into == ticket.key


def test_drift_that_needs_nobody_has_no_ticket_though_a_commit_made_it(paper):
    fail(paper, DRIFT)
    assert tickets(paper, set())[0] == []


def test_what_a_log_tells_too_is_no_work_of_a_commit(paper):
    faults = fail(paper, DRIFT, marks={"check": paper.now.isoformat(), "kernel": "boot:1"})
    assert len(tickets(paper, faults)[0]) == 4


def test_a_breakers_ticket_names_the_commit_before_leaves_and_rack(paper):
    fail(paper, INLET)
    traits = {name: frozenset({("leaf", "leaf-1"), ("rack", "lab1/r01"), (COMMIT, "20796ca9d040")}) for name in NODES}
    pools = dict.fromkeys(NODES, "a")
    series = find_series(paper.situation(traits=traits, pools=pools))["a"]
    first = "; likely behind it: commit that changed what fails 20796ca9d040 (4 of 4); or leaf"
    assert any(first in each.reason for each in series)
    paper.step()
    (ticket,), _ = tickets(paper, set(), traits=traits)
    assert ticket.title.startswith("Find the cause, or clear the breaker: bring the nodes to what git asks")
    assert "rack's air" not in ticket.title + ticket.steps
