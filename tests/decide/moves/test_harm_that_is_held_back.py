"""A catastrophic fault has its own ticket in every state, and is waited for, whatever holds its answer back."""

from __future__ import annotations

import pytest
import yaml

from assay.act.tickets.desired_tickets import (
    TICKET_CAUSES,
    TechnicianNotes,
    list_desired_tickets,
)
from assay.act.tickets.ticket_moves import TicketMoveFinder
from assay.decide.moves.fault_remedies import find_unanswered_faults
from assay.model.fleet import Fleet
from assay.model.ticket import Ticket
from assay.tell.views.fleet import list_cells
from assay.tell.views.fleet_news import _list_waiting
from assay.tell.views.incident_story import NodeStory
from assay.tell.views.next_step import find_next_step, find_waiting_decision
from tests.support.places import ROOT

LEAK = "bmc.event.leak"
ACT = "Check hoses, manifold and cold plates of the tray, with the power off"
STATES = yaml.safe_load((ROOT / "specs/lifecycle/default.yaml").read_text())["states"]


@pytest.fixture
def leaking(paper):
    """Four nodes of a pool, of which one may be out and is, and another that leaks; leaks keep to these limits."""
    rule = paper.policy.faults["leak-in-service"].model_copy(update={"beyond_limits": False})
    faults = paper.policy.faults | {"leak-in-service": rule}
    paper.policy = paper.policy.model_copy(update={"faults": faults})
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


def test_by_default_a_leak_leaves_beyond_the_limits(paper):
    for number in range(4):
        paper.add(f"n{number}", rack=f"r{number}")
    for node, fault_class in {"n0": "gpu.xid.79", "n2": "gpu.xid.79", "n3": LEAK}.items():
        paper.fault(node, fault_class)
        paper.step()
    assert [paper.story(f"n{number}").state for number in (0, 2, 3)] == ["production-reboot", "production", "draining"]


def test_it_is_waited_for_by_name(leaking, tmp_path):
    fleet = Fleet(tmp_path, leaking.nodes, policies={"default": leaking.policy})
    states = leaking.stories()
    stories = {name: NodeStory((), find_next_step(state, leaking.policy, {})) for name, state in states.items()}
    groups = {group.who: dict(group.nodes) for group in _list_waiting(stories, list_cells(fleet, states.values()))}
    assert groups["the limits of the policy"].keys() == {"n3"}
    assert [who for who, nodes in groups.items() if "n3" in nodes] == ["the limits of the policy"]
    assert "held back" in groups["the limits of the policy"]["n3"]
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


@pytest.mark.parametrize("state", [name for name, state in STATES.items() if not state.get("final")])
@pytest.mark.parametrize("fault_class", [LEAK, "identity.changed"])
def test_a_fault_that_no_restart_mends_has_a_ticket_at_once_in_every_state(paper, state, fault_class):
    for number in range(8):
        paper.add(f"n{number}", state if number == 1 else "production", rack=f"r{number}")
    paper.jobs["n1"] = ("a job",)
    ident = paper.fault("n1", fault_class)
    for _ in range(2):  # before and after the policy has answered
        (ticket,) = [each for each in tickets_of(paper, "n1") if fault_class in f"{each.title} {each.seen}"]
        order = ACT if fault_class == LEAK else paper.catalog.find_class(fault_class).investigate
        assert (ticket.severity, ticket.steps.casefold()[:20]) == ("catastrophic", order.casefold()[:20])
        paper.step()
    assert paper.story("n1").open_faults[0].id == ident


def test_a_node_that_drains_for_long_is_as_late_as_its_worst_fault_is_bad(paper):
    for number in range(8):
        paper.add(f"n{number}", rack=f"r{number}")
    paper.jobs["n1"] = ("a job",)
    paper.fault("n1", LEAK)
    paper.step()
    assert paper.story("n1").state == "draining"
    paper.later(minutes=70)
    paper.step()
    tickets = {ticket.key.partition("/")[0]: ticket for ticket in tickets_of(paper, "n1")}
    assert tickets["late"].severity == "catastrophic"
    assert ACT.lower() in tickets["late"].steps.lower()


def test_a_restart_under_way_and_a_repair_by_people_need_no_ticket(paper):
    for number in range(8):
        paper.add(f"n{number}", rack=f"r{number}")
    paper.fault("n1", "gpu.xid.79")
    paper.step()
    assert paper.story("n1").state == "production-reboot"
    assert tickets_of(paper, "n1") == []
    paper.add("n9", "debug", rack="r9")
    paper.fault("n9", LEAK)
    assert [ticket.severity for ticket in tickets_of(paper, "n9")] == ["catastrophic"]
    paper.say("certified", "n9")
    assert tickets_of(paper, "n9") == []


def test_the_ticket_of_a_state_takes_over_from_that_of_the_drain(paper):
    for number in range(8):
        paper.add(f"n{number}", rack=f"r{number}")
    paper.fault("n1", LEAK)
    paper.step()
    (drained,) = tickets_of(paper, "n1")
    paper.settle("n1")
    paper.step()
    (stay,) = tickets_of(paper, "n1")
    assert stay.key.startswith("stay/")
    assert TicketMoveFinder(paper.situation()).find(drained).into == stay.key


RESTARTS = {"production-reboot": "gpu.xid.79", "production-powercycle-test": "host.kernel.deadlock"}


@pytest.mark.parametrize("state", RESTARTS)
def test_a_restart_answers_no_leak_that_only_a_log_told_before_it(paper, state):
    for number in range(8):
        paper.add(f"n{number}", rack=f"r{number}")
    paper.boots["n1"] = "boot-1"
    paper.fault("n1", RESTARTS[state])
    paper.step()
    assert paper.story("n1").state == state
    ident = paper.fault("n1", LEAK, marks={"sel": "2026-01-01T00:00:00+00:00"})
    assert LEAK in "".join(f"{ticket.title} {ticket.seen}" for ticket in tickets_of(paper, "n1"))
    paper.later(minutes=1)
    assert {"reboot", "powercycle"} & {*paper.settle("n1")}
    assert [fault.id for fault in find_unanswered_faults(paper.view("n1"))] == [ident], "the restart answers the other"
    paper.later(minutes=10)
    paper.pass_all("n1")
    paper.step()
    assert paper.story("n1").state == "draining"
    paper.settle("n1")
    paper.step()
    assert paper.story("n1").state == "triage"
    assert not paper.story("n1").is_repaired(paper.story("n1").open_faults[-1])
    paper.say("certified", "n1")
    assert all(map(paper.story("n1").is_repaired, paper.story("n1").open_faults)), "people have it"


def test_a_late_line_of_a_boot_that_people_ended_asks_nobody_again(paper):
    paper.add("n1")
    paper.boots["n1"] = "boot-1"
    paper.fault("n1", "gpu.xid.79")
    paper.step()
    paper.settle("n1")
    late = {"marks": {"kernel": "boot-1:900"}}
    told = paper.fault("n1", "host.mce.fatal", **late)
    story = paper.story("n1")
    assert [fault.id for fault in story.faults if not story.is_repaired(fault)] == [told]
    paper.say("certified", "n1")
    paper.fault("n1", "host.mce.fatal", "cpu1", **late)
    assert all(map(paper.story("n1").is_repaired, paper.story("n1").faults))
