"""An XID that a gauge tells of: one fault when the gauge changes, and none however long it stays as it is."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from assay.adapters.prometheus.readings import XidGaugeChange, build_xid_lines
from assay.decide.faults.detection import detect_faults
from assay.decide.state import decision_and_fault_entries
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value

XID = "NVRM: Xid (PCI:0000:1b:00): 79, gone"
SPEC = SimpleNamespace(
    gpus=SimpleNamespace(pci=["0000:1b:00.0"]), hcas=[], nvme=SimpleNamespace(count=8), usual_faults={}
)


def test_a_gauge_that_stays_at_79_is_one_fault_and_another_change_is_another_sighting(paper):
    paper.add("n1")
    paper.later(hours=3)
    begun = paper.now.timestamp() - 600
    changes = [XidGaugeChange("0000:1b:00.0", 79, begun)]

    def look():
        tree = {"metric_events": {"lines": value(build_xid_lines(changes, booted=begun - 7200))}}
        evidence = EvidenceDocument("n1", paper.now, {"probe": tree})
        found = detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, paper.story("n1"), evidence)
        paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in found))
        return found

    (fault,) = look()
    assert (fault.fault_class, fault.count, fault.subject) == ("gpu.xid.79", 1, "a/n1/gpu0")
    assert fault.first_seen == (paper.now - timedelta(seconds=600)).isoformat(timespec="microseconds")
    for _ in range(20):
        paper.later(hours=1)
        assert look() == []
    changes.append(XidGaugeChange("0000:1b:00.0", 79, begun + 3600))
    assert [again.count for again in look()] == [2]


@pytest.mark.parametrize(
    ("lines", "uptime"),
    [
        ([{"seq": 1, "t_s": 1.0}, 7, None, {"seq": "1", "t_s": 1.0, "text": XID}], 1.0),
        ([{"seq": 1, "t_s": float("inf"), "text": XID}, {"seq": True, "t_s": 1, "text": XID}], 1.0),
        ([{"seq": 1, "t_s": 1.0, "text": XID, "at": "yesterday"}], 1.0),
        ("no list", "soon"),
    ],
)
def test_what_an_agent_pushes_that_is_no_line_is_none_and_breaks_nothing(paper, lines, uptime):
    paper.add("n1")
    tree = {"host": {"uptime_s": value(uptime)}, "kernel_log": {"lines": value(lines)}}
    evidence = EvidenceDocument("n1", paper.now, {"probe": tree, "bmc": {"events": value([])}})
    assert detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, paper.story("n1"), evidence) == []
