"""A new name enters service through proof. Only a named, dated import lets a node serve at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from assay.decide.state.decision_and_fault_entries import make_enrolled_entry, make_left_entry, make_rename_entry
from assay.decide.state.node_entry import describe_entry, find_lapsed_import, find_start_state, list_lapsed_imports
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings, ServiceImport

NOW = datetime(2026, 11, 22, tzinfo=UTC)
IMPORT = ServiceImport(nodes=["n1", "n2"], reason="it served before", expires="2026-12-01")
NODE = Node("n1", "a", "lab1", "r1", 1, "S1", "hgx", "managed", settings=NodeSettings(service_import=IMPORT))


def test_a_node_that_an_import_names_starts_in_service_until_the_import_expires(policy):
    assert find_start_state(policy, NODE, NOW) == "production"
    assert find_start_state(policy, NODE, IMPORT.expires_at) == "onboard"
    assert describe_entry(NODE, NOW).startswith("starts in service without proof, by an import until 2026-12-01")


def test_an_import_may_name_a_range():
    ranged = ServiceImport(nodes=["n1..n120", "m7"], reason="they served before", expires="2026-12-01")
    assert (len(ranged.names), {"n1", "n77", "n120", "m7"} <= ranged.names) == (121, True)
    with pytest.raises(ValidationError, match=r"'n9..n1' is no range of names; write it as n0001..n0020"):
        ServiceImport(nodes=["n9..n1"], reason="they served before", expires="2026-12-01")


def test_an_import_that_has_expired_is_named_where_a_node_depends_on_it(policy, paper):
    after = IMPORT.expires_at
    expected = "starts in onboard, and enters service through proof: its service_import expired on 2026-12-01"
    assert describe_entry(NODE, after) == expected
    assert list_lapsed_imports([NODE], (), after) == {"2026-12-01": ["n1"]}
    assert list_lapsed_imports([NODE], {"n1"}, after) == {}, "it counted when the node was first seen"
    assert list_lapsed_imports([NODE, replace(NODE, name="n9")], (), NOW) == {}
    paper.nodes["n1"] = NODE
    paper.write(make_enrolled_entry("n1", "a", "onboard", paper.now, "S1", find_lapsed_import(NODE, after)))
    assert paper.story("n1").reason == (
        "first seen; the inventory starts it in onboard: its service_import expired on 2026-12-01"
    )


@pytest.mark.parametrize(
    "settings",
    [
        NodeSettings(),
        NodeSettings(service_import=IMPORT),
        NodeSettings(lifecycle_start="production"),
        NodeSettings(lifecycle_start="production", service_import=IMPORT),
    ],
)
def test_any_other_name_enters_through_proof(policy, settings):
    other = replace(NODE, name="n0025", settings=settings)
    assert find_start_state(policy, other, NOW) == "onboard"


def test_another_start_out_of_service_stays_possible(policy):
    assert find_start_state(policy, replace(NODE, settings=NodeSettings(lifecycle_start="seatrial")), NOW) == "seatrial"


def test_a_node_that_is_enrolled_in_a_state_with_a_burn_in_gets_it_as_one_that_comes_there(paper):
    paper.add("n1", "test")
    assert paper.settle("n1") == [], "as long as its entry does not say so: of ledgers of earlier versions"
    del paper.nodes["n1"]
    paper.nodes["n2"] = replace(NODE, name="n2")
    paper.outcomes["n2"], paper.jobs["n2"] = {}, ("job 7",)
    paper.write(make_enrolled_entry("n2", "a", "test", paper.now, "S1", acts=True))
    wanted = [effect.action for effect in list_outstanding_effects(paper.policy, paper.story("n2"))]
    assert wanted == ["cordon", "drain", "burn-in"], "closed and drained first: nothing has closed it before"
    paper.pass_all("n2")
    paper.later(hours=25)
    assert paper.step() == [], "nothing has loaded it"
    assert paper.settle("n2") == wanted
    paper.jobs["n2"] = ()
    paper.pass_all("n2")
    (made,) = paper.step()
    assert (made.to_state, made.timing) == ("production", "immediate")


@pytest.fixture
def broken(paper):
    """Return a fleet whose node n1, of the serial number S1, is in triage with a fault, and held."""
    paper.nodes["n1"] = replace(NODE, settings=NodeSettings())
    paper.outcomes["n1"], paper.jobs["n1"] = {}, ()
    paper.write(make_enrolled_entry("n1", "a", "triage", paper.now, "S1"))
    paper.fault("n1", "gpu.xid.79", "gpu3")
    paper.say("hold", "n1", reason="on the bench")
    return paper


def test_a_machine_with_another_name_keeps_state_faults_and_holds(broken):
    old = broken.story("n1")
    broken.write(make_rename_entry(old, replace(NODE, name="n101", pool="b"), broken.now))
    broken.write(make_left_entry(old, "n101", broken.now))
    story = broken.story("n101")
    assert (story.state, story.pool, story.serial) == ("triage", "b", "S1")
    assert story.hold is not None
    assert [(fault.subject, fault.is_open) for fault in story.faults] == [("b/n101/gpu3", True)]
    assert "n1" not in broken.stories()


def test_two_machines_may_swap_their_names(broken):
    broken.write(make_enrolled_entry("n2", "a", "production", broken.now, "S2"))
    one, two = broken.story("n1"), broken.story("n2")
    broken.write(
        make_rename_entry(one, replace(NODE, name="n2"), broken.now),
        make_rename_entry(two, replace(NODE, name="n1", serial="S2"), broken.now),
    )
    assert (broken.story("n1").state, broken.story("n2").state) == ("production", "triage")


def test_another_machine_under_an_old_name_starts_anew(broken):
    broken.write(make_enrolled_entry("n1", "a", "onboard", broken.now, "S9"))
    story = broken.story("n1")
    assert (story.state, story.serial, story.faults, story.hold) == ("onboard", "S9", (), None)


def test_the_same_machine_is_enrolled_once(broken):
    broken.write(LedgerEntry("again", broken.now.isoformat(), "node.enrolled", "n1", {"pool": "a", "state": "onboard"}))
    assert broken.story("n1").state == "triage"


@pytest.mark.parametrize("left", [False, True])
def test_a_pass_of_the_machine_that_had_the_name_before_proves_nothing_of_the_next(paper, left):
    paper.add("n1", "seatrial", serial="S1")
    paper.judge("n1", "seatrial")
    if left:
        paper.write(make_left_entry(paper.story("n1"), "n2", paper.now))
    paper.write(make_enrolled_entry("n1", "a", "seatrial", paper.now, "S2"))
    paper.later(minutes=5)
    assert [one for one in paper.step() if one.timing != "record"] == []
    paper.judge("n1", "seatrial")
    assert [one.to_state for one in paper.step()] == ["zap"]
