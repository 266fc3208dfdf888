"""A GPU that its peers outvoted leaves service at once, computes again, and goes back to its vendor or to people."""

from __future__ import annotations

import pytest

from assay.model.entries.effects import BurnInEndedEntry, BurnInStartedEntry
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.policy_sections import FaultEscalation

COMPARED = CheckDeclaration(
    id="suites/b.py::test_compared", subject="node", phases=["test", "confirm"], active=True, fault="gpu.sdc"
)


@pytest.fixture
def outvoted(paper):
    paper.checks["confirm"] = COMPARED
    paper.add("n1")
    paper.later(hours=1)
    return paper


def path_of(paper, name):
    return [move.target for move in paper.story(name).transitions]


@pytest.mark.parametrize("jobs", [(), ("llama",)])
def test_it_leaves_service_at_once_even_under_a_job(outvoted, jobs):
    outvoted.jobs["n1"] = jobs
    outvoted.fault("n1", "gpu.sdc", "gpu5")
    outvoted.step()
    assert path_of(outvoted, "n1")[-1] == "confirmation"
    assert outvoted.settle("n1") == ["cordon", "drain-now", "collect"]


@pytest.mark.parametrize("state", ["test", "production-reboot", "production-powercycle-test"])
def test_it_is_asked_again_before_it_serves(outvoted, state):
    outvoted.add("n2", state)
    outvoted.later(hours=1)
    outvoted.judge("n2", "confirm", "fail")
    outvoted.step()
    assert path_of(outvoted, "n2")[-1] == "confirmation"


@pytest.mark.parametrize(("fault", "state"), [("gpu.sdc", "confirmation"), ("", "triage")])
def test_a_burn_in_that_finds_it_has_it_asked_again_and_any_other_verdict_goes_to_people(outvoted, fault, state):
    loaded = outvoted.policy.states["test"].model_copy(update={"burn_in": ["day"]})
    outvoted.policy = outvoted.policy.model_copy(update={"states": {**outvoted.policy.states, "test": loaded}})
    outvoted.add("n2", "test")
    started = BurnInStartedEntry("id", "day", 24)
    ended = BurnInEndedEntry("id", "failed", "gpu5: 1 unit wrong", 3.0, fault=fault)
    outvoted.write(*(one.make_entry(one.kind, outvoted.now.isoformat(), "n2") for one in (started, ended)))
    (decision,) = outvoted.step()
    assert path_of(outvoted, "n2")[-1] == state
    assert [cause.text for cause in decision.causes] == ["burn-in failed after 3.0 of 24 h: gpu5: 1 unit wrong"]


@pytest.mark.parametrize(("verdict", "state"), [("fail", "rma"), ("pass", "triage")])
def test_the_second_run_decides_between_the_vendor_and_people(outvoted, verdict, state):
    outvoted.judge("n1", "confirm", "fail")
    outvoted.later(seconds=1)
    outvoted.fault("n1", "gpu.sdc", "gpu5")
    outvoted.step()
    outvoted.settle("n1")
    assert outvoted.step() == [], "the first verdict alone returns no GPU"
    outvoted.later(minutes=5)
    outvoted.judge("n1", "confirm", verdict)
    outvoted.step()
    assert path_of(outvoted, "n1")[-1] == state


def test_what_cannot_be_told_goes_to_people_and_never_back_into_service(outvoted):
    outvoted.fault("n1", "gpu.sdc", "gpu5")
    outvoted.step()
    outvoted.settle("n1")
    outvoted.later(minutes=5)
    outvoted.judge("n1", "confirm", "error", "a tie: 4 to 4 of 8 GPUs")
    outvoted.step()
    assert path_of(outvoted, "n1")[-1] == "confirmation"
    outvoted.later(hours=4)
    outvoted.step()
    assert path_of(outvoted, "n1")[-1] == "triage"


def test_what_several_parts_explain_leaves_service_too_and_nothing_is_wiped_or_returned(outvoted):
    """While two explanations are left, the check of the phase `confirm` ends in an error, and people look."""
    outvoted.fault("n1", "gpu.sdc.suspect")
    outvoted.step()
    assert path_of(outvoted, "n1")[-1] == "confirmation"
    assert outvoted.settle("n1") == ["cordon", "drain-now", "collect"]
    outvoted.later(minutes=5)
    outvoted.judge("n1", "confirm", "error", "gpu5, gpu6, or the way between gpu5 and gpu6 can be guilty")
    outvoted.step()
    outvoted.later(hours=4)
    outvoted.step()
    assert path_of(outvoted, "n1")[-2:] == ["confirmation", "triage"]
    assert not {"wipe", "dossier"} & set(outvoted.settle("n1"))


def return_to_triage_after_zap(paper, fault):
    """Let a person install the node anew, without certifying it; its battery then finds the same again."""
    paper.fault("n1", fault)
    paper.step()
    paper.settle("n1")
    paper.later(hours=4)
    paper.step()
    assert paper.story("n1").state == "triage"
    paper.settle("n1")
    paper.later(hours=1)
    paper.say("move", "n1", to="zap", now=True)
    paper.step()
    assert paper.settle("n1") == ["zap"]
    paper.later(minutes=10)
    paper.pass_all("n1")
    paper.step()
    assert paper.story("n1").state == "test"
    paper.settle("n1")
    paper.later(hours=1)
    paper.fault("n1", fault)
    for _ in range(3):
        paper.step()
        paper.settle("n1")
        paper.later(hours=4)


def test_suspects_never_go_to_the_vendor_also_where_they_return_after_an_installation(outvoted):
    return_to_triage_after_zap(outvoted, "gpu.sdc.suspect")
    assert path_of(outvoted, "n1")[-3:] == ["test", "confirmation", "triage"]


def test_one_guilty_gpu_that_returns_after_an_installation_goes_to_the_vendor(outvoted):
    return_to_triage_after_zap(outvoted, "gpu.sdc")
    assert path_of(outvoted, "n1")[-2:] == ["triage", "rma"]


def test_an_escalation_of_everything_leaves_suspects_to_people(outvoted):
    step = FaultEscalation(blame="hardware", recurred=False, to="rma")
    triage = outvoted.policy.states["triage"].model_copy(update={"escalate": [step]})
    outvoted.policy = outvoted.policy.model_copy(update={"states": {**outvoted.policy.states, "triage": triage}})
    outvoted.add("n2", "triage")
    outvoted.fault("n2", "gpu.sdc.suspect")
    outvoted.step()
    assert outvoted.story("n2").state == "triage"
    outvoted.fault("n2", "gpu.sdc", "gpu5")
    outvoted.step()
    assert path_of(outvoted, "n2")[-1] == "rma"
