"""Kernel lines, BMC events and failing checks become faults: recognised, counted, told once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from assay.decide.faults.detection import detect_faults
from assay.decide.faults.recovery import find_clearances, find_overridden_faults
from assay.decide.state import decision_and_fault_entries
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import Measurement
from assay.model.reading import absent, failed, value
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import parse_time

XID = "NVRM: Xid (PCI:0000:1b:00): {}, pid=1234, name=python3, GPU has fallen off the bus."
FLAP = "mlx5_core 0000:18:00.0 ibp24s0: Link {}"
SPEC = SimpleNamespace(
    gpus=SimpleNamespace(pci=["0000:18:01.0", "0000:1B:00.0"]),
    hcas=[SimpleNamespace(name="mlx5_3", pci="0000:18:00.0")],
    nvme=SimpleNamespace(count=8),
    usual_faults={},
)


@pytest.fixture
def node(paper):
    paper.add("n1")
    paper.later(minutes=10)
    return Seen(paper)


class Seen:
    """Evidence of node n1 on paper: `seconds` are since its boot, an hour ago."""

    def __init__(self, paper):
        self.paper, self.boot, self.seq = paper, "boot-a", 0

    def kernel(self, *lines, repeat=False):
        if not repeat:
            self.seq += len(lines)
        numbered = enumerate(lines, self.seq - len(lines) + 1)
        told = [{"seq": seq, "t_s": t_s, "text": text} for seq, (t_s, text) in numbered]
        host = {"boot_id": value(self.boot), "uptime_s": value(3600.0)}
        channels = {"probe": {"host": host, "kernel_log": {"lines": value(told)}}}
        return self.faults(EvidenceDocument("n1", self.paper.now, channels))

    def ended(self, *lines):
        """Return the open faults that a recovery action in these lines ends."""
        before, paper = self.paper.story("n1"), self.paper
        over = find_overridden_faults(paper.catalog, before, self.kernel(*lines))
        paper.write(*(decision_and_fault_entries.make_cleared_entry("n1", one, paper.now) for one in over))
        return over

    def events(self, *events):
        host = {"host": {"uptime_s": value(3600.0)}}
        return self.faults(
            EvidenceDocument("n1", self.paper.now, {"bmc": {"events": value(list(events))}, "probe": host})
        )

    def faults(self, evidence=None, outcomes=()):
        paper = self.paper
        story = paper.story("n1")
        found = detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, story, evidence, outcomes)
        paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in found))
        return found

    def judged(self, verdict="fail", phase="production"):
        self.paper.judge("n1", phase, verdict)
        return self.faults(outcomes=self.paper.outcomes["n1"].values())


def event(id_, at, message="CPU 0: uncorrectable error"):
    return {"id": id_, "at": at.isoformat(), "severity": "Critical", "message": message, "message_id": "X.1.0.Y"}


def test_an_xid_names_its_gpu_and_the_time_when_it_happened(node):
    (fault,) = node.kernel((3000, XID.format(79)))
    assert (fault.fault_class, fault.subject) == ("gpu.xid.79", "a/n1/gpu1")
    assert (fault.severity, fault.blame, fault.remedy, fault.count) == ("catastrophic", "hardware", "reboot", 1)
    assert fault.first_seen.startswith("2026-11-21T12:00:00"), "600 s before the look at 12:10"
    assert "fallen off" in fault.detail


def test_xids_of_places_that_the_spec_does_not_have_are_one_fault_that_shows_the_first_line(node):
    lines = ((number, f"NVRM: Xid (PCI:0000:{number:02x}:00): 79, pid=1") for number in range(200, 220))
    (fault,) = node.kernel(*lines)
    assert fault.subject == "a/n1/unknown part"
    assert fault.detail == "NVRM: Xid (PCI:0000:c8:00): 79, pid=1"


@pytest.mark.parametrize(
    ("xid", "severity", "blame"), [(13, "informational", "application"), (7, "informational", "driver")]
)
def test_application_and_unknown_xids_are_told_by_number_and_harm_nobody(node, xid, severity, blame):
    (fault,) = node.kernel((1, XID.format(xid)))
    assert (fault.fault_class, fault.severity, fault.blame) == (f"gpu.xid.{xid}", severity, blame)


def test_other_lines_are_no_faults(node):
    assert node.kernel((1, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"), (2, "Xid?")) == []


def test_a_storm_is_one_fault_with_a_count(node):
    faults = node.kernel(*((second * 10, XID.format(45)) for second in range(300)))
    assert [(fault.fault_class, fault.count) for fault in faults] == [("gpu.xid.45", 300)]


def test_lines_of_one_burst_count_once(node):
    (fault,) = node.kernel(*((100 + second / 100, XID.format(45)) for second in range(300)))
    assert fault.count == 1


def test_lines_that_are_delivered_twice_are_told_once(node):
    lines = [(100, XID.format(79))]
    assert len(node.kernel(*lines)) == 1
    assert node.kernel(*lines, repeat=True) == []


def test_more_of_the_same_is_the_same_fault_with_a_greater_count(node):
    (first,) = node.kernel((100, XID.format(13)))
    (second,) = node.kernel((200, XID.format(13)))
    assert (second.id, second.count, second.first_seen) == (first.id, 2, first.first_seen)


def test_the_same_line_number_after_a_reboot_is_news(node):
    node.kernel((100, XID.format(79)))
    node.boot, node.seq = "boot-b", 0
    (second,) = node.kernel((200, XID.format(79)))
    assert second.count == 2


def test_after_a_repair_the_same_class_is_another_fault(node):
    (first,) = node.kernel((100, XID.format(79)))
    node.paper.step()
    node.paper.settle("n1")
    node.paper.later(hours=1)
    (second,) = node.kernel((3599, XID.format(79)))
    assert second.id != first.id
    assert second.count == 1


def test_a_link_flaps_only_when_it_goes_down_often_enough_in_time(node):
    (fault,) = node.kernel((100, FLAP.format("down")), (101, FLAP.format("up")))
    assert (fault.fault_class, fault.subject, fault.severity) == ("ib.link.flap", "a/n1/mlx5_3", "informational")
    (fault,) = node.kernel((200, FLAP.format("down")), (300, FLAP.format("down")))
    assert (fault.severity, fault.count) == ("degraded", 3)


def test_downs_that_are_far_apart_are_no_flap(node):
    for _ in range(4):
        node.paper.later(hours=2)
        (fault,) = node.kernel((3500, FLAP.format("down")))
        assert fault.severity == "informational"


def test_an_event_log_that_is_delivered_whole_each_time_is_told_once(node):
    now = node.paper.now
    log = [event("7", now - timedelta(minutes=5))]
    assert [fault.fault_class for fault in node.events(*log)] == ["host.hardware.event"]
    assert node.events(*log) == []
    (fault,) = node.events(*log, event("8", now - timedelta(minutes=2)))
    assert fault.count == 2


def test_events_from_before_this_boot_are_history(node):
    assert node.events(event("1", node.paper.now - timedelta(days=30))) == []


def test_a_check_that_fails_in_production_is_a_fault_told_once(node):
    (fault,) = node.judged()
    assert (fault.fault_class, fault.severity) == ("gpu.thermal", "degraded")
    assert node.judged() == []


def test_a_check_that_passes_again_clears_its_fault_and_may_fail_anew(node):
    (first,) = node.judged()
    node.paper.later(minutes=1)
    assert node.judged("pass") == []
    paper = node.paper
    (ended,) = find_clearances(paper.story("n1"), paper.outcomes["n1"].values())
    assert ended.fault == first.id
    paper.write(decision_and_fault_entries.make_cleared_entry("n1", ended, paper.now))
    paper.later(minutes=1)
    (second,) = node.judged()
    assert second.id != first.id


@pytest.mark.parametrize("verdict", ["fail", "error"])
def test_a_pass_ends_nothing_while_another_check_of_the_same_fault_fails_or_cannot_be_judged(node, verdict):
    paper = node.paper
    paper.checks["cold"] = paper.checks["production"].model_copy(update={"id": "suites/p.py::test_cold"})
    (fault,) = node.judged()
    paper.later(minutes=1)
    paper.judge("n1", "cold")
    assert find_clearances(paper.story("n1"), paper.outcomes["n1"].values()) == []
    paper.judge("n1", "production", verdict)
    assert find_clearances(paper.story("n1"), paper.outcomes["n1"].values()) == []
    paper.judge("n1", "production")
    assert [ended.fault for ended in find_clearances(paper.story("n1"), paper.outcomes["n1"].values())] == [fault.id]


def test_a_pass_does_not_clear_what_a_log_has_told_or_what_a_decision_waits_on(node):
    node.kernel((100, XID.format(79)))
    node.paper.jobs["n1"] = ("train",)
    node.judged()
    node.paper.step()
    node.paper.later(minutes=1)
    node.paper.judge("n1", "production")
    assert find_clearances(node.paper.story("n1"), node.paper.outcomes["n1"].values()) == []


@pytest.mark.parametrize("verdict", ["error", "skip"])
def test_a_check_that_could_not_tell_is_no_fault(node, verdict):
    assert node.judged(verdict) == []


def test_a_check_that_the_state_does_not_watch_is_no_fault(node):
    assert node.judged(phase="seatrial") == []


@pytest.mark.parametrize("leaf", [failed("no answer within 5 s"), absent("no /dev/kmsg")])
def test_silence_is_no_fault(node, leaf):
    assert node.faults(EvidenceDocument("n1", node.paper.now, {"probe": leaf, "bmc": leaf})) == []


def test_a_measurement_out_of_bounds_is_a_fault_though_its_check_passed(node):
    plain = node.paper.catalog.model_dump(exclude_unset=True)
    plain["classes"] = {
        "gpu.warm": {
            **plain["classes"]["gpu.thermal"],
            "check": False,
            "measurement": {"name": "gpu_temperature", "above": 80},
        }
    }
    node.paper.catalog = FaultCatalog.model_validate(plain)
    node.paper.judge("n1", "production")
    (one,) = node.paper.outcomes["n1"].values()
    for degrees, expected in ((79.0, []), (81.0, ["gpu.warm"])):
        warm = replace(one, outcome=replace(one.outcome, measurements=(Measurement("gpu_temperature", degrees, "°C"),)))
        assert [fault.fault_class for fault in node.faults(outcomes=[warm])] == expected


def test_a_class_that_nothing_recognises_and_an_xid_with_two_owners_are_refused(catalog):
    plain = catalog.model_dump(exclude_unset=True)
    nothing = {**plain["classes"]["gpu.thermal"], "check": False}
    with pytest.raises(ValueError, match="nothing recognises"):
        FaultCatalog.model_validate({**plain, "classes": {"gpu.odd": nothing}})
    again = {**plain["classes"]["gpu.xid.48"], "xid": [79]}
    with pytest.raises(ValueError, match="XID 79 belongs to both"):
        FaultCatalog.model_validate({**plain, "classes": {**plain["classes"], "gpu.xid.again": again}})
    broken = {**plain["classes"]["gpu.thermal"], "kernel_log": "(unclosed"}
    with pytest.raises(ValueError, match="is not a regular expression"):
        FaultCatalog.model_validate({**plain, "classes": {"gpu.odd": broken}})


def test_lines_of_one_moment_are_told_once_though_their_numbers_grow_a_digit(node):
    lines = [(100.0, XID.format(79))] * 12
    (fault,) = node.kernel(*lines)
    assert fault.marks == {"kernel": "boot-a:12"}
    assert node.kernel(*lines, repeat=True) == []


RECOVERY = "NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x{} ({})"


def standing(node):
    return {fault.fault_class: fault.severity for fault in node.paper.story("n1").faults if fault.is_open}


def test_the_drivers_recovery_action_overrides_the_xid_of_the_same_reading(node):
    node.kernel((100, XID.format(79)), (101, RECOVERY.format(0, "None")))
    assert set(standing(node).values()) == {"informational"}, "a healthy node is left alone"


def test_it_ends_the_open_xids_of_its_gpu(node):
    node.kernel((100, XID.format(48)))
    assert standing(node) == {"gpu.xid.48": "catastrophic"}
    (ended,) = node.ended((101, RECOVERY.format(2, "Node Reboot Required")))
    assert "Node Reboot Required" in ended.reason
    assert standing(node) == {"gpu.xid.154.reboot": "degraded"}


def test_it_leaves_the_xids_of_other_gpus_and_older_ones(node):
    node.kernel((100, XID.format(79).replace("1b:00", "18:01")), (1000, XID.format(48)))
    assert node.ended((2000, RECOVERY.format(0, "None"))) == []


def test_times_since_an_unknown_boot_keep_their_differences(node):
    told = [{"seq": seq, "t_s": t_s, "text": XID.format(48)} for seq, t_s in ((1, 100.0), (2, 160.0), (3, 400.0))]
    channels = {"probe": {"host": {"uptime_s": absent("unknown")}, "kernel_log": {"lines": value(told)}}}
    (fault,) = node.faults(EvidenceDocument("n1", node.paper.now, channels))
    assert (fault.count, parse_time(fault.last_seen)) == (3, node.paper.now)
    assert parse_time(fault.last_seen) - parse_time(fault.first_seen) == timedelta(seconds=300)
