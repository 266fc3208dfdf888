"""What a node could have in common with others, read from the example's fleet, its evidence and its ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.loop.snapshot import FaultWaveTraits
from assay.decide.state.asset_history import NodeSetup, make_setup_entry
from assay.decide.state.fleet_snapshot import COMMIT, SWITCH_TRAY
from assay.declare.loader import load_fleet
from assay.fabric.scan import format_fabric_subject
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import Outcome, SuiteRun
from assay.model.reading import value
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.observe.evidence_store import EvidenceStore
from tests.act.tickets.test_suspect_trays import TRAY, lead_to, make_evidence
from tests.fabric.nvlink_racks import DESIGN, NODES, dump
from tests.support.places import ROOT

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def desk(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    yield ControllerContext(
        load_fleet(ROOT), ledger, EvidenceStore(tmp_path / "evidence"), SystemClock(), tmp_path, tmp_path
    )
    ledger.close()


def test_a_node_has_a_rack_a_spec_and_the_leaves_that_it_is_cabled_to(desk):
    traits = FaultWaveTraits(desk.fleet, desk.ledger, desk.evidence)
    found = traits["n0001"]
    assert {("rack", "lab1/r01"), ("spec", "hgx-h100"), ("profile", "managed")} <= found
    leaves = {name for kind, name in found if kind == "leaf"}
    assert len(leaves) == 8
    assert leaves == {name for kind, name in traits["n0002"] if kind == "leaf"}
    assert len(traits) == len(desk.fleet.nodes)


def test_firmware_and_commit_are_those_that_were_read_and_judged_last(desk):
    desk.evidence.store_latest(EvidenceDocument("n0001", NOW, {"bmc": {"firmware": value({"bios": value("1.2")})}}))
    outcome = Outcome("suites/p.py::test_heat", "h100-a/n0001", "n0001", "pass", evidence_at=NOW.isoformat())
    desk.ledger.record(SuiteRun("run-1", NOW.isoformat(), spec_commit="0123456789abcdef"), [outcome])
    found = FaultWaveTraits(desk.fleet, desk.ledger, desk.evidence)["n0001"]
    assert ("firmware", "bios 1.2") in found
    assert ("spec commit", "0123456789ab") in found


def test_the_commit_since_which_a_check_asks_something_else_is_the_first_by_which_it_failed(desk):
    def judge(run: str, verdict: str, judged_by: str, minute: int, *, dirty: bool = False) -> None:
        at = NOW.replace(minute=minute).isoformat()
        ledger_run = SuiteRun(run, at, spec_commit=f"{run}{'0' * 38}", dirty=dirty)
        check = ("suites/p.py::test_heat", "h100-a/n0001", "n0001", verdict)
        outcome = Outcome(*check, evidence_at=at, judged_by=judged_by, reason="as planted", fault="inlet.out-of-range")
        desk.ledger.record(ledger_run, [outcome])

    def find() -> set[str]:
        traits = FaultWaveTraits(desk.fleet, desk.ledger, desk.evidence)
        (failed,) = [each for each in desk.ledger.latest("n0001") if each.outcome.verdict == "fail"]
        assert {name for kind, name in traits["n0001"] if kind == COMMIT} == {traits.find_commit(failed)} - {""}
        return traits.find_commit(failed)

    judge("a1", "fail", "wide", 1)
    assert find() == "", "it never passed"
    judge("a2", "pass", "wide", 2)
    judge("a3", "fail", "wide", 3)
    assert find() == "", "the same limits: the node is another"
    judge("a4", "fail", "tight", 4)
    judge("a5", "fail", "tight", 5)
    assert find() == "a40000000000"
    judge("a6", "pass", "wide", 6)
    judge("a7", "fail", "edited", 7, dirty=True)
    assert find() == "a70000000000 and uncommitted changes", "no commit asks it"
    judge("a8", "fail", "edited", 8)
    assert find() == "a80000000000", "now one does"


def test_the_delivery_the_driver_and_the_models_are_those_that_were_seen_last(desk):
    seen = NodeSetup("r01", 4, "hgx-h100", "lot-7", {"driver": "570.1"}, {"gpu0": "H100", "gpu1": "H100"})
    desk.ledger.append(make_setup_entry(NodeSetup(), seen, "n0001", NOW))
    found = FaultWaveTraits(desk.fleet, desk.ledger, desk.evidence)["n0001"]
    assert {("batch", "lot-7"), ("driver", "570.1"), ("part", "H100")} <= found


def test_the_switch_tray_where_all_sick_nvlinks_of_a_rack_lead_is_shared_by_its_nodes(desk):
    designs = {**desk.fleet.designs, "rack-07": FabricDesign.model_validate(DESIGN)}
    fleet = replace(desk.fleet, designs=designs)
    for name in NODES:
        desk.evidence.store_latest(make_evidence(name, lead_to(*TRAY, first=1)))
    trays = {kind for kind, _ in FaultWaveTraits(fleet, desk.ledger, desk.evidence)["n0003"]}
    assert SWITCH_TRAY not in trays, "no scan says where the links lead"
    scan = EvidenceDocument(format_fabric_subject(designs["rack-07"]), NOW, {"discovery": {"text": value(dump())}})
    desk.evidence.store_latest(scan)
    traits = FaultWaveTraits(fleet, desk.ledger, desk.evidence)
    assert {name for name in traits if (SWITCH_TRAY, "nvswitch-5") in traits[name]} == {*NODES}
    desk.evidence.store_latest(make_evidence("n0001", lambda tray, gpu: [1, 7, 9]))
    assert not any(kind == SWITCH_TRAY for kind, _ in FaultWaveTraits(fleet, desk.ledger, desk.evidence)["n0003"])
