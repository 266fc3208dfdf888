"""An XID that the host and its BMC tell is one fault on one GPU, in whichever order they come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from assay.decide.faults.detection import detect_faults
from assay.decide.state import decision_and_fault_entries
from assay.model.evidence import EvidenceDocument
from assay.model.reading import failed, value

SPEC: Any = SimpleNamespace(
    gpus=SimpleNamespace(pci=["0000:1b:00.0", "0000:43:00.0"]), hcas=[], nvme=SimpleNamespace(count=8), usual_faults={}
)
HOST = {"0000:1b:00.0": {"serial": value("1650000000001")}, "0000:43:00.0": {"serial": value("1650000000002")}}
BMC = {"GPU_SXM_2": {"serial": value("1650000000001")}, "GPU_SXM_1": {"serial": value("1650000000002")}}


def host(paper: Any, *, xid: bool) -> dict[str, Any]:
    lines = [{"seq": 1, "t_s": 7200.0, "text": "NVRM: Xid (PCI:0000:1b:00): 79, gone"}] if xid else []
    readings = {"uptime_s": value(7200.0), "boot_id": value("b"), "read_at": value(paper.now.isoformat())}
    return {"host": readings, "gpu": {"devices": HOST}, "kernel_log": {"lines": value(lines)}}


def bmc(paper: Any, *, xid: bool, part: str = "GPU_SXM_2") -> dict[str, Any]:
    said = f"'[{paper.now:%a %b %d %H:%M:%S UTC %Y}][1][00] XID 79 gone'"
    message = f"The resource property {part} Driver Event Message has detected errors of type {said}."
    entry = {"id": "1", "at": paper.now.isoformat(), "severity": "Critical", "message": message, "log": "Systems HGX"}
    return {"processor": {"gpu": BMC}, "events": value([entry] if xid else [])}


def look(paper: Any, probe: Any, box: Any) -> list[tuple[str, str, int]]:
    seen = EvidenceDocument("n1", paper.now, {"probe": probe, "bmc": box})
    found = detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, paper.story("n1"), seen)
    paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in found))
    return [(fault.fault_class, fault.subject, fault.count) for fault in found]


@pytest.fixture
def node(paper: Any) -> Any:
    paper.add("n1")
    paper.later(hours=3)
    return paper


def test_told_by_both_at_once_it_is_one_fault(node: Any) -> None:
    assert look(node, host(node, xid=True), bmc(node, xid=True)) == [("gpu.xid.79", "a/n1/gpu0", 1)]


def test_told_by_the_bmc_alone_it_names_the_gpu_and_the_host_adds_nothing(node: Any) -> None:
    box = bmc(node, xid=True)
    assert look(node, host(node, xid=False), box) == [("gpu.xid.79", "a/n1/gpu0", 1)]
    told = host(node, xid=True)
    assert [count for _, _, count in look(node, told, box)] == [1], "within one burst"
    assert [fault.subject for fault in node.story("n1").faults] == ["a/n1/gpu0"]


def test_an_xid_of_another_gpu_is_another_fault(node: Any) -> None:
    found = look(node, host(node, xid=True), bmc(node, xid=True, part="GPU_SXM_1"))
    assert found == [("gpu.xid.79", "a/n1/gpu0", 1), ("gpu.xid.79", "a/n1/gpu1", 1)]


def test_a_host_that_answers_later_makes_no_second_fault_of_an_entry(node: Any) -> None:
    box = bmc(node, xid=True)
    assert look(node, failed("no answer"), box) == [("gpu.xid.79", "a/n1/GPU_SXM_2", 1)]
    told = host(node, xid=False)
    node.later(minutes=5)
    assert look(node, told, box) == []
