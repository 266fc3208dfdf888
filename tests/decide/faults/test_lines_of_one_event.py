"""The lines of one event give one answer, in whatever order the kernel and what collects its lines wrote them."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

from assay.decide.faults.detection import detect_faults
from assay.decide.state.decision_and_fault_entries import make_fault_entries
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value

GPU = "0000:1b:00"
LOST = [
    f"NVRM: Xid (PCI:{GPU}): 79, pid=1, GPU has fallen off the bus.",
    f"NVRM: GPU {GPU}.0: GPU has fallen off the bus.",
    "NVRM: GPU has fallen off the bus.",
    f"NVRM: Xid (PCI:{GPU}): 45, pid=2, name=python3, Ch 00000008",
    f"NVRM: Xid (PCI:{GPU}): 119, pid=3, Timeout after 6s of waiting for RPC response from GPU0 GSP!",
]
MEMORY = [f"NVRM: Xid (PCI:{GPU}): {number}, pid=1, name=python3, something" for number in (48, 171, 45)]
CALLS = [
    LOST[0],
    "NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned from f",
    "NVRM: GPU0 _kgspRpcRecvPoll: GSP RM heartbeat timed out",
]
SILENT = [f"NVRM: Xid (PCI:{GPU}): 119, pid=3, Timeout after 6s of waiting for RPC response from GPU0 GSP!", *CALLS[1:]]
PORT = ["pcieport 0000:15:01.0: pciehp: Slot(7): Link Down", LOST[0], LOST[2]]
STORM = [f"[{at:12.6f}] NVRM: Xid (PCI:{GPU}): 45, pid=2, name=python3, Ch {at}" for at in range(100, 110)]
SPEC: Any = SimpleNamespace(
    gpus=SimpleNamespace(pci=[f"{GPU}.0"]), hcas=[], nvme=SimpleNamespace(count=8), usual_faults={}
)


def stamped(lines: Any, start: float = 5000.0) -> list[str]:
    return [f"[{start + place / 10:12.6f}] {line}" for place, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (LOST[:4], "gpu.xid.79"),
        ([LOST[1], *LOST[3:]], "gpu.bus.lost"),
        (MEMORY, "gpu.xid.48"),
        (PORT, "gpu.xid.79"),
        (CALLS, "gpu.xid.79"),
        (SILENT, "gpu.xid.119"),
    ],
)
@pytest.mark.parametrize("stamp", [stamped, list], ids=["with times", "without times"])
def test_a_log_tells_one_fault_in_every_order_of_the_lines(lines, name, stamp, tell):
    for order in permutations(lines):
        (fault,) = tell(*stamp(order))["faults"]
        assert (fault["fault"], fault["subject"][:10], fault["count"], fault["lines"]) == (name, GPU, 1, 1), order
        told = sum(int(word.partition("×")[2].split()[0]) for word in fault["because"].split("; ") if "×" in word)
        assert told == len(lines) - 1, order


def test_what_came_long_before_stays(tell):
    document = tell(*STORM, *stamped([LOST[3], LOST[0]]))
    assert {fault["fault"]: fault["lines"] for fault in document["faults"]} == {"gpu.xid.79": 1, "gpu.xid.45": 10}
    assert document["by"]["gpu.xid.45", GPU]["last"] == "boot+109.000000s"


NVLINK = f"NVRM: Xid (PCI:{GPU}): 74, pid=1, name=python3, NVLink: fatal error detected on link 6"
RESET = "GPU reset executed: GPU-11111111-2222, success: true"


def test_calls_that_fail_long_after_the_gpu_was_lost_are_no_cause_of_their_own(tell):
    (fault,) = tell(*stamped([LOST[0]]), *stamped([CALLS[1]] * 3, start=8000.0))["faults"]
    assert (fault["fault"], "gpu.lost ×3" in fault["because"]) == ("gpu.xid.79", True)


def test_each_sign_of_a_lost_gpu_stands_alone_too(tell):
    assert [tell(*stamped([line]))["faults"][0]["action"] for line in CALLS] == ["reboot"] * 3


def test_a_lesser_cause_that_comes_after_takes_nothing_back(tell):
    assert len(tell(*stamped([NVLINK, RESET]))["faults"]) == 2


def test_without_times_a_lesser_cause_hides_nothing(tell):
    assert len(tell(NVLINK, RESET)["faults"]) == len(tell(RESET, NVLINK)["faults"]) == 2


def test_without_times_lines_far_from_each_other_are_no_event(tell):
    between = [LOST[3].replace(GPU, f"0000:{bus:02x}:00") for bus in range(0x40, 0x4C)]
    names = [one["fault"] for one in tell(LOST[1], *between, LOST[0])["faults"]]
    assert names.count("gpu.bus.lost") == names.count("gpu.xid.79") == 1


def test_each_host_has_events_of_its_own(tell):
    first, second = stamped([LOST[1], LOST[0]])
    assert {(one["fault"], one["host"]) for one in tell(f"n1: {first}", f"n2: {second}")["faults"]} == {
        ("gpu.bus.lost", "n1"),
        ("gpu.xid.79", "n2"),
    }


def test_a_look_at_a_node_finds_one_fault_in_every_order_of_the_lines(paper: Any) -> None:
    paper.add("n1")
    for order in permutations(LOST[:4]):
        lines = [{"seq": at, "t_s": 7200 + at / 10, "text": line} for at, line in enumerate(order)]
        host = {"uptime_s": value(7300.0), "boot_id": value("b"), "read_at": value(paper.now.isoformat())}
        probe = {"host": host, "kernel_log": {"lines": value(lines)}}
        seen = EvidenceDocument("n1", paper.now, {"probe": probe, "bmc": {}})
        found = detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, paper.story("n1"), seen)
        assert [(fault.fault_class, fault.subject) for fault in found] == [("gpu.xid.79", "a/n1/gpu0")], order


def test_lines_in_deliveries_of_their_own_leave_one_open_fault_in_every_order(paper: Any) -> None:
    for name, order in enumerate(permutations(LOST[:4])):
        paper.add(f"n{name}")
        for at, line in enumerate(order):
            deliver(paper, f"n{name}", {"seq": at, "t_s": 7200 + at / 10, "text": line})
        story = paper.story(f"n{name}")
        assert [fault.fault_class for fault in story.faults if fault.is_open] == ["gpu.xid.79"], order
        deliver(paper, f"n{name}", *({"seq": at, "t_s": 7200 + at / 10, "text": line} for at, line in enumerate(order)))
        assert paper.story(f"n{name}").faults == story.faults, order


def test_what_came_long_before_another_delivery_stays_open(paper: Any) -> None:
    paper.add("n1")
    deliver(paper, "n1", {"seq": 1, "t_s": 7200.0, "text": LOST[1]})
    deliver(paper, "n1", {"seq": 2, "t_s": 7210.0, "text": LOST[0]})
    assert [fault.fault_class for fault in paper.story("n1").faults if fault.is_open] == ["gpu.bus.lost", "gpu.xid.79"]


def deliver(paper: Any, node: str, *lines: dict[str, Any]) -> None:
    host = {"uptime_s": value(7300.0), "boot_id": value("b"), "read_at": value(paper.now.isoformat())}
    seen = EvidenceDocument(node, paper.now, {"probe": {"host": host, "kernel_log": {"lines": value([*lines])}}})
    fleet: Any = SimpleNamespace(
        nodes=paper.nodes,
        policy=paper.policy,
        fault_catalog=paper.catalog,
        spec_of=lambda _: SPEC,
        known_issues=[],
        observed_checks=(),
    )
    paper.write(*make_fault_entries(fleet, paper.story(node), paper.now, seen))
