"""What other tools say is evidence with a source and a weight of its own: it moves no node, and jobs find theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.act.ingest.alertmanager_alerts import record_alerts
from assay.act.ingest.fault_recording import record_agent_faults
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.adapters.prometheus.alerts import map_alert
from assay.adapters.signals import parse_signals
from assay.decide.faults.incidents import list_incidents
from assay.decide.faults.recovery import find_lapsed_signals
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.reading import value
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

NOW = datetime.now(UTC).replace(microsecond=0)
AT = (NOW - timedelta(minutes=1)).isoformat()


class Room:
    """The example fleet's ledger, and a door for signals."""

    def __init__(self, fleet: Fleet, home: Path) -> None:
        self.fleet, self.said = fleet, list[str]()
        self.ledger = Ledger.open(home / "ledger.sqlite")
        store = EvidenceStore(home / "evidence")
        self.context = ControllerContext(fleet, self.ledger, store, SystemClock(), home, home / "reports")
        enroll_nodes(self.context)

    def take(self, document: Any) -> None:
        mapping = self.fleet.monitorings["exporters"].signals
        assert mapping is not None
        signals = parse_signals(json.dumps(document).encode(), NOW)
        mapped = [map_alert(each, mapping, self.fleet.nodes, weight=0) for each in signals]
        record_alerts(self.context, mapped, self.said.append)

    def log(self, node: str, text: str) -> None:
        """Let a node's agent deliver a line of the kernel."""
        line = {"seq": 1, "t_s": 10.0, "text": text, "at": AT}
        probe = {"host": {"boot_id": value("b")}, "kernel_log": {"lines": value([line])}}
        record_agent_faults(self.context, [EvidenceDocument(node, NOW, {"probe": probe})])

    def faults(self) -> list[tuple[str, str, str, str]]:
        """Return node, class, severity and source of each recorded fault."""
        return [
            (entry.node, entry.body["class"], entry.body["severity"], *sorted(entry.body["marks"])[:1])
            for entry in self.entries("fault")
        ]

    def entries(self, kind: str) -> list[LedgerEntry]:
        return self.ledger.entries(kinds=[kind])


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture
def room(fleet: Fleet, tmp_path: Path) -> Iterator[Room]:
    opened = Room(fleet, tmp_path)
    yield opened
    opened.ledger.close()


def node_list(kind: str, status: str, message: str = "", name: str = "n0003") -> dict[str, Any]:
    """Return a node as `kubectl get nodes -o json` prints it, with a condition of a tool."""
    conditions = [
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": kind, "status": status, "reason": f"{kind}Is", "message": message, "lastTransitionTime": AT},
        {"type": "AssayCordoned", "status": "True", "reason": "Cordoned", "lastTransitionTime": AT},
    ]
    node = {"kind": "Node", "metadata": {"name": name}, "status": {"conditions": conditions}}
    return {"kind": "List", "apiVersion": "v1", "items": [node]}


def slurm_job(state: str, nodes: str = "n[0003-0006]", **more: Any) -> dict[str, Any]:
    end = {"set": True, "infinite": False, "number": int(NOW.timestamp())}
    job = {"job_id": 4711, "user_name": "ann", "name": "train", "job_state": [state], "nodes": nodes, "end_time": end}
    return {"jobs": [{**job, **more}]}


def test_a_problem_of_node_problem_detector_is_recorded_moves_nothing_and_ends_with_its_condition(room: Room) -> None:
    room.take(node_list("ReadonlyFilesystem", "True", "EXT4-fs (sda1): Remounting filesystem read-only"))
    assert room.faults() == [("n0003", "signal.readonlyfilesystem", "informational", "signal kubernetes")]
    room.take(node_list("ReadonlyFilesystem", "False", "Filesystem is not read-only"))
    (over,) = room.entries("fault.cleared")
    assert over.body["because"] == "the alert kubernetes ReadonlyFilesystem is resolved"


def test_nvsentinel_s_condition_is_the_xid_of_that_gpu_and_weighs_nothing_until_assay_sees_it_too(room: Room) -> None:
    text = "ErrorCode:79 GPU:0 GPU_UUID:GPU-455d8f70 PCI:0000:1b:00 XID error occurred Recommended Action=RESTART_BM;"
    room.take(node_list("GpuXidError", "True", text.replace("1b:00 ", "1b:00.0 ")))
    assert room.faults() == [("n0003", "gpu.xid.79", "informational", "signal kubernetes")]
    room.log("n0003", "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.")
    assert room.entries("fault")[-1].body["subject"] == "h100-a/n0003/gpu0"
    assert room.faults()[-1][1:3] == ("gpu.xid.79", "catastrophic")


def test_an_event_of_a_node_is_held_for_a_day_and_that_of_another_thing_is_none_of_ours(room: Room) -> None:
    about = {"kind": "Node", "name": "n0003"}
    event = {"kind": "Event", "type": "Warning", "reason": "TaskHung", "involvedObject": about, "lastTimestamp": AT}
    event |= {"metadata": {"name": "e1"}, "source": {"component": "kernel-monitor"}, "message": "task sh:1 blocked"}
    pod = {**event, "involvedObject": {"kind": "Pod", "name": "n0003"}}
    room.take({"kind": "EventList", "items": [event, pod, {**event, "type": "Normal"}]})
    assert room.faults() == [("n0003", "signal.taskhung", "informational", "signal kubernetes")]
    assert (
        room.entries("fault")[0]
        .body["marks"]["signal kubernetes"]
        .endswith((NOW - timedelta(minutes=1) + timedelta(hours=24)).isoformat())
    )


def test_a_report_ends_when_it_said_that_it_would(room: Room) -> None:
    report = {"source": "gpud", "node": "n0003", "part": "gpu3", "class": "memory", "severity": "fatal", "at": AT}
    room.take({"signals": [{**report, "until": (NOW + timedelta(hours=1)).isoformat()}]})
    assert room.faults() == [("n0003", "signal.memory", "informational", "signal gpud")]
    (state,) = (each for each in project_node_states(room.ledger.entries()).values() if each.faults)
    assert find_lapsed_signals(state, NOW) == []
    (over,) = find_lapsed_signals(state, NOW + timedelta(hours=1))
    assert over.reason == f"nobody has said it again until {(NOW + timedelta(hours=1)).isoformat()}"


def test_one_tool_does_not_end_what_another_one_says(room: Room) -> None:
    report = {"node": "n0003", "class": "memory", "at": AT}
    room.take({"signals": [{**report, "source": name} for name in ("gpud", "other")]})
    room.take({"signals": [{**report, "source": "gpud", "until": AT}]})
    assert room.entries("fault.cleared") == []


def test_a_job_that_died_by_its_user_opens_nothing(room: Room) -> None:
    room.take(slurm_job("FAILED"))
    room.take(slurm_job("CANCELLED"))
    room.log("n0004", "NVRM: Xid (PCI:0000:1b:00): 31, pid=1, name=python, Ch 00000008, MMU Fault")
    room.take(slurm_job("FAILED", job_id=4712))
    assert [entry.body["class"] for entry in room.entries("fault")] == ["gpu.xid.31"]
    assert "no machine of its nodes had a fault then" in room.said[0]


def test_a_job_that_died_by_a_gpu_is_part_of_that_incident_and_of_no_other_node_s(room: Room) -> None:
    room.log("n0005", "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.")
    room.take(slurm_job("FAILED"))
    assert [(node, name) for node, name, *_ in room.faults()] == [("n0005", "gpu.xid.79"), ("n0005", "job.ended")]
    state = project_node_states(room.ledger.entries())["n0005"]
    (incident,) = list_incidents(room.fleet.fault_catalog.fault_relations, state)
    assert [symptom.fault_class for symptom in incident.symptoms] == ["gpu.xid.79", "job.ended"]
    assert incident.symptoms[1].detail == "signal slurm FAILED: job 4711 of ann ended: FAILED"


def test_a_job_without_a_fault_is_about_the_node_that_slurm_lost(room: Room) -> None:
    room.take(slurm_job("NODE_FAIL", failed_node="n0006"))
    assert room.faults() == [("n0006", "job.ended", "informational", "signal slurm")]


def test_lines_of_nccl_and_ends_of_pods_find_the_node_that_had_a_fault(room: Room) -> None:
    room.log("n0005", "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.")
    line = "NCCL WARN NET/IB : Got completion from peer 10.2.0.5<33092> with error 12, opcode 0, len 0, vendor err 129"
    job = {"source": "trainer", "job": "j1", "nodes": "n[0003-0006]", "class": "nccl", "at": AT}
    room.take({"signals": [{**job, "text": line}]})
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": AT}
    pod = {"kind": "Pod", "metadata": {"namespace": "a", "name": "w-1"}, "spec": {"nodeName": "n0005"}}
    pod["status"] = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": ended}}]}
    room.take({"kind": "PodList", "items": [pod]})
    assert {(node, name) for node, name, *_ in room.faults()} == {("n0005", "gpu.xid.79"), ("n0005", "job.ended")}
    assert room.entries("fault")[-1].body["count"] >= 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"kind": "NodeList"}',
        b'{"kind": "Secret", "data": {}}',
        b'{"signals": [{}]}',
        b'{"signals": [{"source": "a b", "class": "x"}]}',
        b'{"signals": [{"source": "a", "class": "x", "more": 1}]}',
        b'{"jobs": [{}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_signal_is_refused_in_plain_words(body: bytes) -> None:
    with pytest.raises(AssayError, match=r"no signals|Slurm's JSON"):
        parse_signals(body, NOW)
