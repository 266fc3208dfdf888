"""After a repair, a node runs the parts of a load that its faults ask for (`proof`), and serves only if they pass."""

from __future__ import annotations

import pytest

from assay.act.ingest.collection import find_due_parts
from assay.decide.moves.required_checks import judge_state_requirements
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.load_parts import USUAL_PARTS

PROOFS = {"gpu.silent": ("dcgm_diag_3",)}
DIAGNOSED = CheckDeclaration(
    id="suites/d.py::test_diagnosed", subject="node", phases=["test"], active=True, parts=["dcgm_diag_3"]
)


@pytest.fixture
def repaired(paper):
    """A node that was restarted, because a GPU gave no results. Its state loads no node by itself."""
    paper.checks["diagnosed"] = DIAGNOSED
    paper.add("n1")
    paper.later(hours=1)
    paper.fault("n1", "gpu.silent", "gpu5")
    paper.step()
    paper.settle("n1")
    paper.later(minutes=10)
    name = paper.story("n1").state
    state = paper.policy.states[name]
    passive = state.model_copy(update={"requires": [want for want in state.requires if not want.active]})
    assert state.pass_to == "production"
    paper.policy = paper.policy.model_copy(update={"states": {**paper.policy.states, name: passive}})
    return paper


def due(paper, proofs):
    return find_due_parts(paper.situation(proofs=proofs), paper.view("n1"))


def unmet(paper):
    results = judge_state_requirements(paper.situation(proofs=PROOFS), paper.view("n1"))
    return {result.requirement.phase for result in results if not result.is_met}


def test_a_restart_is_proven_by_a_load_although_its_state_asks_for_none(repaired):
    assert due(repaired, {}) == ()
    assert due(repaired, PROOFS) == ("dcgm_diag_3",)
    assert "test" in unmet(repaired)
    for check in ("diagnosed", "test"):
        repaired.judge("n1", check)
    assert "test" not in unmet(repaired)


def test_a_check_of_another_part_proves_nothing(repaired):
    repaired.judge("n1", "test")
    assert "test" in unmet(repaired)


def test_a_failed_proof_is_no_proof(repaired):
    repaired.judge("n1", "test")
    repaired.judge("n1", "diagnosed", "fail")
    assert "test" in unmet(repaired)


def test_a_state_that_loads_the_node_runs_the_proof_too_and_only_where_a_fault_asks(paper):
    paper.checks["diagnosed"] = DIAGNOSED
    paper.add("n1", "test")
    paper.later(hours=1)
    assert due(paper, PROOFS) == USUAL_PARTS
    paper.fault("n1", "gpu.silent", "gpu5")
    assert due(paper, PROOFS) == (*USUAL_PARTS, "dcgm_diag_3")
