"""One incident is decided once: what follows from its cause asks for nothing of its own, unless it says more."""

from __future__ import annotations

from tests.decide.moves.test_harm_that_is_held_back import tickets_of


def moves_of(made):
    return [decision for decision in made if decision.timing != "record"]


def test_a_supply_its_event_and_the_rollup_ask_for_one_ticket(paper):
    paper.add("n1")
    for name, part in (("bmc.event.power-supply", ""), ("psu.failed", "psu3"), ("bmc.unhealthy", "")):
        paper.fault("n1", name, part)
    made = [decision for decision in paper.step() if decision.remedy == "ticket"]
    assert [cause.text.split(" ")[0] for decision in made for cause in decision.causes] == ["psu.failed"]


def test_a_symptom_that_comes_while_the_node_waits_changes_nothing(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("job 7",)
    paper.fault("n1", "gpu.pcie.degraded", "gpu3")
    (pending,) = moves_of(paper.step())
    paper.fault("n1", "gpu.copy.slow", "gpu3")
    assert moves_of(paper.step()) == []
    assert paper.story("n1").pending.decision == pending.id


def test_a_worse_symptom_says_something_new(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("job 7",)
    paper.fault("n1", "gpu.pcie.degraded", "gpu3")
    paper.step()
    paper.fault("n1", "gpu.xid.79", "gpu3")
    (move,) = moves_of(paper.step())
    assert move.timing == "immediate"


def test_another_incident_on_the_node_is_decided_for_itself(paper):
    paper.add("n1")
    paper.fault("n1", "psu.failed", "psu3")
    assert moves_of(paper.step()) == []
    paper.fault("n1", "gpu.pcie.degraded", "gpu3")
    assert [move.causes[0].text for move in moves_of(paper.step())] == [
        "gpu.pcie.degraded on a/n1/gpu3: as planted",
    ]


def test_what_follows_may_ask_for_more_than_its_cause(paper):
    """A supply alone is a ticket. GPUs that it slows down are none to serve with."""
    paper.add("n1")
    paper.fault("n1", "psu.failed", "psu3")
    paper.fault("n1", "gpu.power-brake", "gpu3")
    assert [move.to_state for move in moves_of(paper.step())] != []


def test_what_is_left_when_the_cause_is_over_decides(paper):
    paper.add("n1")
    cause = paper.fault("n1", "psu.failed", "psu3")
    paper.fault("n1", "bmc.unhealthy")
    paper.step()
    assert len(tickets_of(paper, "n1")) == 1
    paper.later(minutes=1)
    paper.say("fault.cleared", "n1", fault=cause, because="it passes again")
    paper.later(minutes=1)
    paper.step()
    (ticket,) = tickets_of(paper, "n1")
    assert ticket.title.startswith("bmc.unhealthy")
