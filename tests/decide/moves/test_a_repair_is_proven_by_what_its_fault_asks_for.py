"""After a repair, a node runs the parts of a load that its faults ask for (`proof`), and serves only if they pass."""

from __future__ import annotations

import pytest
import yaml

from assay.act.ingest.collection import find_due_parts
from assay.decide.moves.decide import decide
from assay.decide.moves.required_checks import judge_state_requirements
from assay.model.decision import REPAIR_ACTIONS
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.fault_catalog import FaultCatalog, merge_catalogs
from assay.model.specs.load_parts import USUAL_PARTS
from tests.support.places import ROOT

CATALOG = merge_catalogs(
    FaultCatalog.model_validate(yaml.safe_load(path.read_text()))
    for path in sorted((ROOT / "specs" / "faults").glob("*.yaml"))
)
XIDS_OF_HARDWARE = [
    name
    for name, fault in CATALOG.classes.items()
    if name.startswith("gpu.xid.") and fault.blame == "hardware" and fault.severity != "informational"
    if fault.remedy in REPAIR_ACTIONS | {"reset", "triage", "rma"}
]
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


def test_a_skipped_proof_is_no_proof(repaired):
    repaired.judge("n1", "test")
    repaired.judge("n1", "diagnosed", "skip", "dcgmi is not installed")
    assert "test" in unmet(repaired)
    (reason,) = [
        line
        for result in judge_state_requirements(repaired.situation(proofs=PROOFS), repaired.view("n1"))
        for line in result.missing
        if "diagnosed" in line
    ]
    assert reason.endswith("skip: dcgmi is not installed")


def test_a_proof_in_parts_is_whole_when_its_last_part_is_and_a_part_that_fails_again_breaks_it(repaired):
    proofs = {"gpu.silent": ("dcgm_diag_3", "dcgmproftester")}
    repaired.checks["tensor"] = DIAGNOSED.model_copy(
        update={"id": "suites/d.py::test_tensor", "parts": ["dcgmproftester"]}
    )

    def is_proved() -> bool:
        judged = judge_state_requirements(repaired.situation(proofs=proofs), repaired.view("n1"))
        return all(result.is_met for result in judged if result.requirement.phase == "test")

    assert set(due(repaired, proofs)) == {"dcgm_diag_3", "dcgmproftester"}
    repaired.judge("n1", "test")
    repaired.judge("n1", "diagnosed")
    assert not is_proved(), "half of a proof is none"
    repaired.later(minutes=20)
    repaired.judge("n1", "tensor")
    assert is_proved(), "the parts may come one after the other"
    repaired.judge("n1", "diagnosed", "fail")
    assert not is_proved()


def test_a_passive_check_of_a_phase_that_the_state_does_not_ask_for_is_asked_for(repaired):
    proofs = {"gpu.silent": ("test_inventory",)}
    judged = judge_state_requirements(repaired.situation(proofs=proofs), repaired.view("n1"))
    (asked,) = [result for result in judged if result.requirement.phase == "seatrial"]
    assert not asked.is_met
    repaired.judge("n1", "seatrial")
    judged = judge_state_requirements(repaired.situation(proofs=proofs), repaired.view("n1"))
    assert all(result.is_met for result in judged if result.requirement.phase == "seatrial")


def test_after_xid_79_the_catalogue_asks_for_diagnosis_tensor_rate_and_right_results(paper):
    for number, part in enumerate(("dcgm_diag_3", "dcgmproftester", "battery")):
        paper.checks[part] = DIAGNOSED.model_copy(update={"id": f"suites/d.py::test_{number}", "parts": [part]})
    paper.add("n1")
    paper.later(hours=1)
    paper.fault("n1", "gpu.xid.79", "gpu4")
    paper.step()
    paper.settle("n1")
    paper.later(minutes=10)
    paper.judge("n1", "test")
    paper.judge("n1", "production")
    for part in ("dcgm_diag_3", "dcgmproftester", "battery"):
        assert part in due(paper, paper.catalog.proofs)
        paper.step()
        assert paper.story("n1").state == "production-reboot", f"{part} is not proved"
        paper.judge("n1", part)
    paper.step()
    assert paper.story("n1").state == "production"


def test_the_reason_of_the_move_counts_what_no_load_ran(paper):
    paper.checks["diagnosed"] = DIAGNOSED
    paper.add("n1")
    paper.later(hours=1)
    paper.fault("n1", "gpu.xid.119", "gpu4")
    paper.step()
    paper.settle("n1")
    paper.later(minutes=10)
    paper.judge("n1", "test")
    paper.judge("n1", "production")
    state = paper.policy.states["production-reboot"]
    for want in judge_state_requirements(paper.situation(proofs={}), paper.view("n1")):
        assert want.is_met
    made = [one for one in paper.step(lambda _: decide(paper.situation(proofs={}))) if one.to_state == state.pass_to]
    assert (
        made[0]
        .causes[0]
        .text.startswith(
            "1 of 2 checks of phase test passed, 1 skipped: no load ran dcgm_diag_3, on evidence since 2026-11-21"
        )
    )


@pytest.mark.parametrize("fault_class", [*XIDS_OF_HARDWARE])
def test_every_xid_that_takes_a_gpu_out_says_what_proves_its_repair(fault_class: str):
    proof = CATALOG.proofs[fault_class]
    assert "battery" in proof, "right results"
    assert any(part.startswith("dcgm_diag") for part in proof), "its diagnosis"


def test_a_state_that_loads_the_node_runs_the_proof_too_and_only_where_a_fault_asks(paper):
    paper.checks["diagnosed"] = DIAGNOSED
    paper.add("n1", "test")
    paper.later(hours=1)
    assert due(paper, PROOFS) == USUAL_PARTS
    paper.fault("n1", "gpu.silent", "gpu5")
    assert due(paper, PROOFS) == (*USUAL_PARTS, "dcgm_diag_3")
