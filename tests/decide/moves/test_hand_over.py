"""A node goes from one customer to another: closed first, opened with every proof, and recorded with all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.act.tickets.desired_tickets import list_desired_tickets
from assay.decide.moves.hand_over import describe_missing_proofs, judge_refused_hand_overs
from assay.decide.state.decision_and_fault_entries import make_cleared_entry, make_fault_entry
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.node_settings import NodeSettings
from assay.model.specs.policy_sections import HandOverProof

PROOFS = {
    "drives": HandOverProof(actions=["wipe"]),
    "gpu-memory": HandOverProof(actions=["powercycle", "netboot"]),
    "tpm-owner": HandOverProof(checks=["test_tpm"]),
}
TPM = CheckDeclaration(id="suites/h.py::test_tpm", subject="node", phases=["hand-over"], fault="host.config.drift")
ACTIONS = ["cordon", "drain", "wipe", "netboot"]


def give(paper, customer, name="n1"):
    paper.nodes[name] = replace(paper.nodes[name], settings=NodeSettings(customer=customer))


def state(paper):
    return paper.story("n1").state


def order(paper, to="hand-over"):
    paper.say("move", "n1", to=to, now=True)
    paper.step()


@pytest.fixture
def site(paper):
    """A node that serves a, and that the inventory then gives to b."""
    paper.policy = paper.policy.model_copy(
        update={"hand_over": paper.policy.hand_over.model_copy(update={"proofs": PROOFS})}
    )
    paper.checks["hand-over"] = TPM
    paper.add("n1")
    give(paper, "a")
    paper.step()
    return paper


def leave(site):
    give(site, "b")
    site.step()
    site.settle("n1")


def test_whom_a_node_serves_is_noted_once_and_nothing_moves(site):
    assert (site.story("n1").customer, state(site)) == ("a", "production")
    assert site.step() == []


def test_without_a_customer_in_the_inventory_nothing_is_noted_and_nothing_is_asked(paper):
    paper.add("n1")
    assert paper.step() == []
    assert paper.story("n1").customer == ""


def test_a_node_that_the_inventory_gives_to_another_is_closed_and_a_ticket_asks_for_the_hand_over(site):
    leave(site)
    assert state(site) == "cordoned"
    assert "it served a, and the inventory gives it to b" in site.story("n1").reason
    (ticket,) = [one for one in list_desired_tickets(site.situation(), (), {}) if "former customer" in one.title]
    assert "assay move n1 hand-over" in ticket.steps


def test_nothing_opens_it_without_a_hand_over_not_even_a_person(site):
    leave(site)
    site.pass_all("n1")
    order(site, "production")
    assert state(site) == "cordoned"
    assert "it opens only out of hand-over" in site.story("n1").note
    give(site, "a")
    site.step()
    assert state(site) == "production", "the inventory names its customer again"


def test_the_decision_that_opens_it_names_every_proof_and_its_customer(site):
    leave(site)
    order(site)
    assert site.settle("n1") == ACTIONS
    site.pass_all("n1")
    (opened,) = site.step()
    assert (opened.from_state, opened.to_state, opened.customer) == ("hand-over", "production", "b")
    proofs = [cause for cause in opened.causes if cause.kind == "hand-over"]
    assert [cause.text.partition(":")[0] for cause in proofs] == [*PROOFS]
    effects = {effect.id: effect.action for effect in site.story("n1").effects}
    assert [effects.get(cause.id) for cause in proofs] == ["wipe", "netboot", None]
    assert proofs[2].id.endswith("/suites/h.py::test_tpm[a/n1]")
    assert site.story("n1").customer == "b"


@pytest.mark.parametrize("count", range(len(ACTIONS)))
def test_an_interrupt_after_any_step_leaves_it_closed(site, count):
    leave(site)
    order(site)
    for action in ACTIONS[:count]:
        site.effect("n1", "verified", site.story("n1").decision, action)
    for phase in ("hand-over", "test", "production"):
        site.judge("n1", phase)
    site.step()
    assert state(site) == "hand-over"
    assert describe_missing_proofs(site.situation(), site.view("n1"))


def test_a_proof_that_fails_keeps_it_closed_on_its_long_way_back(site):
    leave(site)
    order(site)
    site.settle("n1")
    site.later(minutes=3)
    for phase in ("test", "production"):
        site.judge("n1", phase)
    site.judge("n1", "hand-over", "fail", "somebody owns it")
    site.step()
    assert state(site) == "draining"
    site.settle("n1")
    site.step()
    site.say("certified", "n1")
    for _ in range(4):
        site.step()
        site.settle("n1")
        site.pass_all("n1")
    site.later(hours=25)
    for phase in ("test", "production", "fabric"):
        site.judge("n1", phase)
    site.step()
    assert state(site) == "test", "all its tests pass, and it stays closed"
    assert "it served a, and the inventory gives it to b" in site.story("n1").note
    order(site)
    site.settle("n1")
    site.pass_all("n1")
    site.step()
    assert (state(site), site.story("n1").customer) == ("production", "b")


def prove_all_but_the_hand_over(site):
    order(site)
    site.settle("n1")
    for phase in ("test", "production"):
        site.judge("n1", phase)
    site.step()
    assert state(site) == "hand-over"


def test_evidence_of_the_former_stay_proves_nothing(site):
    leave(site)
    site.judge("n1", "hand-over")
    prove_all_but_the_hand_over(site)
    assert "older than the last repair" in describe_missing_proofs(site.situation(), site.view("n1"))[0]


def test_a_check_that_is_not_due_on_the_node_is_no_proof(site):
    del site.checks["hand-over"]
    leave(site)
    prove_all_but_the_hand_over(site)
    assert describe_missing_proofs(site.situation(), site.view("n1")) == ["tpm-owner: test_tpm is not due on this node"]


def test_a_person_may_not_hurry_a_hand_over_and_its_record_is_whole_all_the_same(site):
    leave(site)
    order(site)
    site.settle("n1")
    for phase in ("test", "production"):
        site.judge("n1", phase)
    order(site, "production")
    assert state(site) == "hand-over"
    site.judge("n1", "hand-over")
    made = [decision for decision in site.step() if decision.to_state == "production"]
    assert sum(cause.kind == "hand-over" for decision in made for cause in decision.causes) == len(PROOFS)


def test_a_refused_hand_over_is_a_fault_with_a_ticket_until_the_next_one_begins(site):
    def judge():
        faults, ends = judge_refused_hand_overs(site.situation(), site.catalog)
        site.write(*(make_fault_entry(fault, site.now) for fault in faults))
        site.write(*(make_cleared_entry(node, end, site.now) for node, end in ends))
        return [fault.detail for fault in faults], len(ends)

    leave(site)
    assert judge() == ([], 0)
    order(site)
    for action in ACTIONS[:2]:
        site.effect("n1", "verified", site.story("n1").decision, action)
    site.effect("n1", "failed", site.story("n1").decision, "wipe", reason="nvme3 can still be read")
    assert judge() == ([], 0)
    site.step()
    assert state(site) == "triage"
    ([detail], _) = judge()
    assert detail == "it served a, and the inventory gives it to b: wipe failed: nvme3 can still be read"
    assert judge() == ([], 0), "once"
    tickets = list_desired_tickets(site.situation(), (), {})
    assert any("nvme3 can still be read" in ticket.seen for ticket in tickets)
    give(site, "a")
    assert judge() == ([], 1), "the inventory names its customer again"
    site.later(minutes=1)
    give(site, "b")
    assert judge() == ([detail], 0)
    order(site)
    assert judge() == ([], 1), "another one has begun"
    site.settle("n1")
    site.pass_all("n1")
    site.step()
    assert (state(site), site.story("n1").customer) == ("production", "b")
    assert judge() == ([], 0)
    assert not [fault for fault in site.story("n1").faults if fault.is_open]
    give(site, "c")
    site.step()
    assert judge() == ([], 0), "what failed was another hand-over"
