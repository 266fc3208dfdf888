"""A catastrophic fault on a node that serves has its own ticket, and is waited for, whatever holds its answer back."""

from __future__ import annotations

import pytest

from assay.act.tickets.desired_tickets import TICKET_CAUSES, TechnicianNotes, list_desired_tickets
from assay.model.fleet import Fleet
from assay.model.ticket import Ticket
from assay.tell.views.fleet import list_cells
from assay.tell.views.fleet_news import _list_waiting
from assay.tell.views.next_step import find_next_step, find_waiting_decision

LEAK = "bmc.event.leak"


@pytest.fixture
def leaking(paper):
    """Four nodes of a pool, of which one may be out and is, and another that leaks."""
    for number in range(4):
        paper.add(f"n{number}", rack=f"r{number}")
    paper.fault("n0", "gpu.xid.79")
    paper.step()
    paper.fault("n3", LEAK, detail="Leak detected at cold plate 2")
    paper.step()
    return paper


def tickets_of(paper, node: str) -> list[Ticket]:
    decisions = [entry for entry in paper.log.values() if entry.kind == "decision"]
    notes = TechnicianNotes(catalog=paper.catalog)
    wanted = list_desired_tickets(paper.situation(), TICKET_CAUSES.fold(decisions), {}, notes)
    return [ticket for ticket in wanted if ticket.node == node]


def test_a_leak_that_the_limit_holds_back_is_told_with_its_act(leaking):
    assert leaking.story("n3").state == "production", "the limit keeps it where it is"
    (ticket,) = tickets_of(leaking, "n3")
    assert (ticket.severity, ticket.title) == (
        "catastrophic",
        f"Check hoses, manifold and cold plates of the tray, with the power off: n3 ({LEAK})",
    )
    assert "hoses, manifold and cold plates of the tray" in ticket.steps.splitlines()[0]
    assert "Leak detected at cold plate 2" in ticket.seen
    assert "n3 still serves: " in ticket.seen
    assert "held back" in ticket.seen


def test_it_is_waited_for_by_name(leaking, tmp_path):
    fleet = Fleet(tmp_path, leaking.nodes, policies={"default": leaking.policy})
    stories = [*leaking.stories().values()]
    groups = {group.who: dict(group.nodes) for group in _list_waiting(fleet, stories, list_cells(fleet, stories), [])}
    assert groups["room within the limits of the policy"].keys() == {"n3"}
    assert [who for who, nodes in groups.items() if "n3" in nodes] == ["room within the limits of the policy"]
    assert "held back" in groups["room within the limits of the policy"]["n3"]
    policy, title = leaking.policy, "Check hoses"
    step = find_next_step(leaking.story("n3"), policy, {"t1": Ticket("t1", "t1", title)})
    assert step.detail.endswith(f"; technicians meanwhile: {title}"), "who waits for room still learns what hands do"
    waiting = find_waiting_decision(leaking.story("n3"), serves=True)
    assert waiting is not None
    assert waiting.blocker == "limits"


def test_a_ticket_of_a_state_is_as_severe_as_its_worst_fault(paper):
    for number in range(8):
        paper.add(f"n{number}", rack=f"r{number}")
    paper.fault("n1", LEAK)
    paper.step()
    paper.settle("n1")
    paper.step()
    assert paper.story("n1").state == "triage"
    (ticket,) = tickets_of(paper, "n1")
    assert (ticket.key.partition("/")[0], ticket.severity) == ("stay", "catastrophic")
