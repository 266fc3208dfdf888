"""What one node can make assay write is bounded; what is not kept is counted, told, and no way back to health."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from assay.decide.faults.detection import TELEMETRY_FLOODED, detect_faults
from assay.decide.faults.recovery import find_quiet_recoveries
from assay.decide.state import decision_and_fault_entries
from assay.model.evidence import EvidenceDocument
from assay.model.faults.sightings import MAX_DETAIL_LENGTH
from assay.model.reading import value

SPEC = SimpleNamespace(
    gpus=SimpleNamespace(pci=[f"0000:{place:02x}:00.0" for place in range(16, 24)]),
    hcas=[],
    nvme=SimpleNamespace(count=4),
    usual_faults={},
)
MOST = 128
SERVERS = [f"nfs: server s{number} not responding, still trying" for number in range(500)]
"""500 XIDs that no catalogue knows: informational, each a fault of its own."""
LOST = "NVRM: Xid (PCI:0000:11:00): 79, pid=1, GPU has fallen off the bus."


@pytest.fixture
def deliver(paper):
    """Return a function that delivers kernel lines of n1 and writes down the faults in them."""
    paper.add("n1")
    paper.later(minutes=10)
    state = SimpleNamespace(seq=0)

    def lines(*texts: str, again: bool = False):
        first = state.seq - len(texts) if again else state.seq
        state.seq = first + len(texts)
        told = [{"seq": first + n, "t_s": (first + n) / 1000, "text": text} for n, text in enumerate(texts, 1)]
        host = {"boot_id": value("boot"), "uptime_s": value(60.0)}
        evidence = EvidenceDocument("n1", paper.now, {"probe": {"host": host, "kernel_log": {"lines": value(told)}}})
        found = detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, paper.story("n1"), evidence)
        paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in found))
        names = [fault.fault_class if fault.fault_class != "nfs.silent" else fault.subject for fault in found]
        return dict(zip(names, found, strict=True)), evidence

    return lines


def test_only_so_many_faults_are_kept_and_the_rest_is_counted_in_one(deliver, paper):
    found, _ = deliver(*SERVERS)
    flood = found.pop(TELEMETRY_FLOODED)
    assert len(found) == MOST
    assert (flood.count, flood.subject, flood.severity, flood.remedy) == (500 - MOST, "a/n1", "degraded", "ticket")
    assert flood.detail.startswith(f"more than {MOST} informational faults are open, and the rest is only counted here")


def test_the_same_lines_again_add_nothing(deliver):
    deliver(*SERVERS)
    assert deliver(*SERVERS, again=True)[0] == {}


def test_a_flood_of_harmless_faults_hides_no_catastrophic_one(deliver, paper):
    deliver(*SERVERS)
    found, _ = deliver(LOST)
    assert found["gpu.xid.79"].severity == "catastrophic"
    moves = {decision.node: decision.to_state for decision in paper.step() if decision.timing == "immediate"}
    assert moves == {"n1": "production-reboot"}


def test_a_flood_is_on_record_and_ends_after_a_quiet_day_only(deliver, paper):
    _, evidence = deliver(*SERVERS)
    decisions = [one for one in paper.step() if TELEMETRY_FLOODED in one.causes[0].text]
    assert [(one.timing, one.remedy) for one in decisions] == [("record", "ticket")]
    flood = next(fault for fault in paper.story("n1").faults if fault.fault_class == TELEMETRY_FLOODED)
    for hours, over in ((1, False), (23, False), (25, True)):
        later = EvidenceDocument("n1", evidence.at + timedelta(hours=hours), evidence.channels)
        ended = find_quiet_recoveries(paper.catalog, paper.story("n1"), later)
        assert (flood.id in {one.fault for one in ended}) == over


def test_a_decision_shows_twenty_causes_and_answers_them_all(deliver, paper):
    deliver(*(f"NVRM: Xid (PCI:0000:{place:02x}:00): {xid}, pid=1" for place in range(16, 24) for xid in range(1, 180)))
    before = [fault for fault in paper.story("n1").faults if fault.severity == "catastrophic"]
    assert len(before) > 20
    (move,) = [one for one in paper.step() if one.timing == "immediate"]
    assert [cause.kind for cause in move.causes] == ["fault"] * 20 + ["faults"]
    assert move.causes[-1].text == f"and {len(move.causes[-1].fault_ids)} more faults"
    assert {fault.id for fault in before} <= {ident for cause in move.causes for ident in cause.fault_ids}
    answered = {fault.id for fault in paper.story("n1").faults if fault.response == "acted"}
    assert {fault.id for fault in before} <= answered


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("NVRM: Xid (PCI:0000:10:00): 79, pid=1", "/gpu0"),
        ("NVRM: Xid (PCI:0000:ff:00): 79, pid=1", "/unknown part"),
        ("NVRM: Xid (PCI:1:2:3:4): 79, pid=1", "/unknown part"),
        ("nvme nvme3: controller is down; will reset", "/nvme3"),
        ("nvme nvme4: controller is down; will reset", "/unknown part"),
        ("blk_update_request: I/O error, dev sdb, sector 1", "/sdb"),
        (f"blk_update_request: I/O error, dev {'x' * 65}, sector 1", "/unknown part"),
    ],
)
def test_a_fault_is_on_a_part_that_the_node_can_have(deliver, text, part):
    found, _ = deliver(text)
    assert {fault.subject for fault in found.values()} == {f"a/n1{part}"}


def test_a_long_line_is_cut(deliver):
    found, _ = deliver(f"{LOST} {'x' * 9000}")
    assert len(found["gpu.xid.79"].detail) == MAX_DETAIL_LENGTH + 1
