"""What kernel log and NVML both tell is one fault, an echo is none, and a flap that stopped is over in time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from assay.decide.faults.detection import detect_faults
from assay.decide.faults.recovery import find_measured_recoveries, find_quiet_recoveries
from assay.decide.state import decision_and_fault_entries
from assay.declare.loader import load_fleet
from assay.declare.rules.fault_rules import list_fault_kinds
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import Measurement
from assay.model.reading import failed, value
from assay.model.specs.policy_response import respond_to_fault
from tests.support.places import ROOT

SPEC = SimpleNamespace(
    gpus=SimpleNamespace(pci=["0000:1b:00.0"]),
    hcas=[SimpleNamespace(name="mlx5_3", pci="0000:18:00.0")],
    nvme=SimpleNamespace(count=8),
    usual_faults={},
)
XID = "NVRM: Xid (PCI:0000:1b:00): {}, pid=1, name=python3"
FLAP = "mlx5_core 0000:18:00.0 ibp24s0: Link down"


@pytest.fixture
def look(paper):
    """Return a function that classifies lines (seconds since boot, text, source) of node n1, and writes faults down."""
    paper.add("n1")
    paper.later(minutes=10)
    numbers = {"kernel": 0, "nvml": 0}

    def told(*lines):
        said = []
        for t_s, text, source in lines:
            numbers[source] += 1
            said.append({"seq": numbers[source], "t_s": t_s, "text": text, "source": source})
        found = detect_faults(
            paper.catalog, paper.policy, paper.nodes["n1"], SPEC, paper.story("n1"), evidence(paper, said)
        )
        paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in found))
        return found

    return told


def evidence(paper, lines, at=None):
    host = {"boot_id": value("boot-a"), "uptime_s": value(3600.0)}
    log = lines if isinstance(lines, dict) else {"lines": value(lines)}
    return EvidenceDocument("n1", at or paper.now, {"probe": {"host": host, "kernel_log": log}})


def test_a_xid_that_both_kernel_and_nvml_tell_is_one(look):
    (fault,) = look((100, XID.format(79), "kernel"), (101, XID.format(79), "nvml"))
    assert (fault.fault_class, fault.count) == ("gpu.xid.79", 1)
    assert fault.marks == {"kernel": "boot-a:1", "nvml": "boot-a:1"}


def test_it_is_one_too_when_they_are_delivered_apart(look):
    (first,) = look((100, XID.format(79), "nvml"))
    (again,) = look((101, XID.format(79), "kernel"))
    assert (again.id, again.count) == (first.id, 1)
    (later,) = look((200, XID.format(79), "nvml"))
    assert later.count == 2


def test_an_echo_is_told_with_its_cause_and_as_no_fault(look):
    assert [
        fault.fault_class for fault in look((100, XID.format(48), "kernel"), (100.5, XID.format(45), "kernel"))
    ] == ["gpu.xid.48"]
    assert look((110, XID.format(45), "kernel")) == [], "delivered later, it is still that fault's echo"
    (own,) = look((900, XID.format(45), "kernel"))
    assert (own.fault_class, own.severity) == ("gpu.xid.45", "informational")


def test_a_sub_code_that_needs_nothing_never_reaches_the_threshold(look):
    quiet = "NVRM: Xid (PCI:0000:1b:00): 145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 0x80000000)"
    (fault,) = look(*((1000 + at * 60, quiet, "kernel") for at in range(5)))
    assert (fault.severity, fault.count) == ("informational", 5)
    assert "needs nothing" in fault.detail


def test_a_flap_is_over_after_a_quiet_day_and_not_before(look, paper):
    look(*((at * 60, FLAP, "kernel") for at in range(1, 5)))
    story = paper.story("n1")
    soon = evidence(paper, [], paper.now + timedelta(hours=23))
    late = evidence(paper, [], paper.now + timedelta(hours=25))
    assert find_quiet_recoveries(paper.catalog, story, soon) == []
    (over,) = find_quiet_recoveries(paper.catalog, story, late)
    assert over.fault == story.faults[0].id
    assert over.reason == "not seen again for 26 h"


def test_a_log_that_could_not_be_read_is_not_silent(look, paper):
    look(*((at * 60, FLAP, "kernel") for at in range(1, 5)))
    unread = evidence(paper, failed("no answer within 3 s"), paper.now + timedelta(days=9))
    assert find_quiet_recoveries(paper.catalog, paper.story("n1"), unread) == []


def test_a_xid_is_never_over_by_silence(look, paper):
    look((100, XID.format(79), "kernel"))
    assert (
        find_quiet_recoveries(paper.catalog, paper.story("n1"), evidence(paper, [], paper.now + timedelta(days=365)))
        == []
    )


@pytest.mark.parametrize("in_use", [True, False])
def test_no_fault_of_an_application_or_a_person_moves_a_node(policy, catalog, in_use):
    theirs = [kind for kind in list_fault_kinds([catalog]) if kind.blame in ("application", "operator")]
    assert len(theirs) > 40
    for kind in theirs:
        for state in policy.states:
            answer = respond_to_fault(policy, state, kind.name, kind.severity, kind.blame, kind.remedy, in_use)
            assert not answer.moves_node, (kind, state)


def test_a_number_that_a_check_let_pass_is_a_fault_until_it_is_back_in_bounds(paper):
    def measured(celsius):
        paper.judge("n1", "production")
        key, one = next(iter(paper.outcomes["n1"].items()))
        number = Measurement("gpu_temperature", celsius, "°C", None, 85.0, "specs/nodes/n.yaml:1")
        paper.outcomes["n1"][key] = replace(one, outcome=replace(one.outcome, measurements=(number,)))
        outcomes = list(paper.outcomes["n1"].values())
        story = paper.story("n1")
        seen = detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, story, None, outcomes)
        paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in seen))
        paper.later(minutes=1)
        return [fault.fault_class for fault in seen], find_measured_recoveries(paper.catalog, story, outcomes)

    paper.add("n1")
    assert measured(70) == ([], [])
    assert measured(83) == (["gpu.thermal.warning"], [])
    assert measured(84) == ([], []), "told once while it is open"
    _, (over,) = measured(75)
    assert (over.fault, over.reason) == (paper.story("n1").faults[0].id, "gpu_temperature is 75 °C")


def test_what_all_nodes_of_a_kind_print_is_recorded_and_asks_for_nothing(look, paper, monkeypatch):
    line = "mlx5_core 0000:18:00.0: mlx5_pcie_event:301:(pid 9): Detected insufficient power on the PCIe slot (27W)."
    shipped = load_fleet(ROOT).node_specs
    assert shipped["hgx-h200"].usual_faults == shipped["hgx-h100"].usual_faults
    assert shipped["hgx-b200"].usual_faults == {}, "known of H100 only"
    monkeypatch.setattr(SPEC, "usual_faults", shipped["hgx-h100"].usual_faults)
    (fault,) = look((100, line, "kernel"))
    assert (fault.fault_class, fault.severity) == ("hca.power", "informational")
    monkeypatch.setattr(SPEC, "usual_faults", {})
    (fault,) = look((200, line, "kernel"))
    assert fault.severity == "degraded"
