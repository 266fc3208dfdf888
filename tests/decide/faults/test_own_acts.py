"""What an act of assay causes is no fault, by the shipped rules: for its parts and its time."""

from __future__ import annotations

from datetime import timedelta
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import pytest

from assay.decide.faults.detection import detect_faults
from assay.decide.state import decision_and_fault_entries
from assay.model.decision import DISTURBING_ACTIONS
from assay.model.entries.boot import BmcTakeoverEntry
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value

SPEC = SimpleNamespace(
    gpus=SimpleNamespace(pci=["0000:1b:00.0"]), hcas=[], nvme=SimpleNamespace(count=8), usual_faults={}
)
UPDATED = "The BMC firmware was updated to version 01.05.13; the management controller restarts."
UNSUCCESSFUL = "Verification of bmc failed after writing"
NO_INPUT = "Power supply PS2 has lost its input."
LINK_DOWN = "bnxt_en 0000:21:00.0 ens1np0: NIC Link is Down"


class Told:
    """Node n1, and what its BMC and kernel say now."""

    def __init__(self, paper: Any) -> None:
        self.paper, self.number, self.events = paper, 0, []
        paper.add("n1")
        paper.later(hours=1)

    def act(self, action: str, standing: str, decision: str = "d1") -> None:
        self.paper.effect("n1", standing, decision, action)

    def hear(self, *texts: str, severity: str = "Critical") -> list[tuple[str, str]]:
        """Add entries to the BMC's log, which comes whole each time; return class and severity of what is new."""
        for text in texts:
            self.number += 1
            at = self.paper.now.isoformat()
            self.events.append({"id": f"{self.number}", "at": at, "message": text, "severity": severity})
        return self._detect({"bmc": {"events": value(list(self.events))}})

    def read(self, *lines: str) -> list[tuple[str, str]]:
        self.number += 1
        said = [{"seq": self.number * 10 + n, "t_s": 3000.0, "text": line} for n, line in enumerate(lines)]
        host = {"boot_id": value("boot-a"), "uptime_s": value(3000.0)}
        return self._detect({"probe": {"host": host, "kernel_log": {"lines": value(said)}}})

    def judge(self, verdict: str, phase: str = "production") -> list[tuple[str, str]]:
        self.paper.judge("n1", phase, verdict)
        return self._detect({})

    def _detect(self, tree: dict[str, Any]) -> list[tuple[str, str]]:
        paper, state = self.paper, self.paper.story("n1")
        latest = list(paper.outcomes["n1"].values())
        document = EvidenceDocument("n1", paper.now, tree)
        seen = detect_faults(paper.catalog, paper.policy, paper.nodes["n1"], SPEC, state, document, latest)
        paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in seen))
        return [(fault.fault_class, fault.severity) for fault in seen]


@pytest.fixture
def told(paper: Any) -> Told:
    return Told(paper)


@pytest.mark.parametrize("text", [UPDATED, UNSUCCESSFUL])
def test_what_a_flash_logs_is_recorded_names_the_flash_and_raises_nothing(told: Told, text: str) -> None:
    told.act("zap", "intent")
    told.paper.later(minutes=20)
    ((_, severity),) = told.hear(text)
    assert severity == "informational"
    (fault,) = told.paper.story("n1").faults
    assert "caused by assay's own zap of " in fault.detail
    assert [(made.timing, made.remedy) for made in told.paper.step()] == [("record", "none")]


@pytest.mark.parametrize(("text", "name"), [(UPDATED, "bmc.event.unknown"), (NO_INPUT, "bmc.event.power-supply")])
def test_the_same_entry_without_an_act_is_a_fault(told: Told, text: str, name: str) -> None:
    assert told.hear(text) == [(name, "degraded")]
    assert [made.remedy for made in told.paper.step()] == ["ticket"]


def test_it_is_a_fault_again_once_the_stated_time_is_over_and_that_is_what_it_says(told: Told) -> None:
    told.act("zap", "intent")
    told.paper.later(minutes=20)
    told.act("zap", "verified")
    told.paper.later(minutes=14)
    assert told.hear(UPDATED) == [("bmc.event.unknown", "informational")]
    told.paper.later(minutes=2)
    assert told.hear(UPDATED) == [("bmc.event.unknown", "degraded")]
    assert "own zap" not in told.paper.story("n1").faults[0].detail


def test_what_came_before_the_act_is_a_fault(told: Told) -> None:
    told.hear()
    before = (told.paper.now - timedelta(minutes=3)).isoformat()
    told.events.append(
        {
            "id": "1",
            "at": before,
            "message": UPDATED,
            "severity": "Critical",
        }
    )
    told.act("zap", "intent")
    assert told.hear() == [("bmc.event.unknown", "degraded")]


def test_an_act_that_failed_ties_nothing_so_what_it_left_is_a_fault(told: Told) -> None:
    told.act("zap", "intent")
    told.paper.later(minutes=20)
    told.act("zap", "failed")
    assert told.hear(UNSUCCESSFUL) == [("bmc.event.controller", "degraded")]


def test_an_act_that_nobody_read_back_ends_with_the_stay(told: Told) -> None:
    told.act("reboot", "unknown")
    told.paper.later(minutes=30)
    assert told.hear(NO_INPUT) == [("bmc.event.power-supply", "informational")]
    told.paper.fault("n1", "gpu.xid.79", "gpu0")
    told.paper.step()
    told.paper.step()
    assert told.paper.story("n1").state != "production"
    told.paper.later(minutes=30)
    assert told.hear(NO_INPUT) == [("bmc.event.power-supply", "degraded")]


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("zap", "Uncorrectable ECC error in DIMM_A1"),
        ("zap", "A word that nobody has heard before"),
        ("configure", UPDATED),
    ],
)
def test_what_the_act_does_not_cause_is_a_fault_in_the_middle_of_it(told: Told, action: str, text: str) -> None:
    told.act(action, "intent")
    ((_, severity),) = told.hear(text)
    assert severity == "degraded"


def test_links_that_a_restart_takes_down_do_not_count_and_later_ones_do(told: Told) -> None:
    told.act("reboot", "intent")
    told.paper.later(minutes=5)
    assert {severity for _, severity in told.read(LINK_DOWN, LINK_DOWN)} <= {"informational"}
    told.act("reboot", "verified")
    told.paper.later(minutes=11)
    for _ in range(3):
        seen = told.read(LINK_DOWN)
        told.paper.later(minutes=1)
    assert seen == [("nic.link.flap", "degraded")]


def test_a_counter_that_an_act_raised_is_judged_anew_after_it(told: Told) -> None:
    told.paper.checks["production"] = told.paper.checks["production"].model_copy(update={"fault": "ib.link.flap"})
    told.act("configure", "verified")
    told.paper.later(minutes=1)
    assert told.judge("fail") == []
    told.paper.later(minutes=2)
    assert told.judge("fail") == [("ib.link.flap", "degraded")]


def test_drives_that_are_erased_are_tied_and_other_parts_are_not(told: Told) -> None:
    told.act("wipe", "intent")
    told.paper.later(minutes=1)
    stuck = "nvme nvme3: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting req_op:READ(0) size:4096"
    ((name, severity),) = told.read(stuck)
    assert (name, severity) == ("nvme.timeout", "informational")
    ((name, severity),) = told.read("NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.")
    assert (name, severity) != ("gpu.xid.79", "informational")


@pytest.mark.parametrize(("step", "severity"), [("done", "informational"), ("failed", "degraded")])
def test_a_bmc_that_was_taken_over_may_say_so(told: Told, step: str, severity: str) -> None:
    takeover = BmcTakeoverEntry(step, "s-n1", "assay", "root")
    told.paper.write(takeover.make_entry("takeover-1", told.paper.now.isoformat(), "n1"))
    assert told.hear("The password of user root was changed.") == [("bmc.event.security", severity)]


def test_every_rule_names_what_there_is(paper: Any) -> None:
    names = {name for name, rule in paper.catalog.classes.items() if rule.has_own_name}
    names |= {number for rule in paper.catalog.classes.values() for number in rule.list_xid_names()}
    for act in paper.catalog.acts:
        for symptom in act.symptoms:
            assert any(fnmatchcase(name, symptom) for name in names), symptom
    known = {action for act in paper.catalog.acts for action in act.actions}
    assert known == (DISTURBING_ACTIONS - {"drain-now"}) | {"configure", "take-over"}
