"""Expectations of a scenario are compared with the facts, and a difference is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.lab.scenario import ExpectStep, ScenarioObservation, check_expectations
from assay.lab.virtual_node_state import write_json
from assay.lab.world import LabWorld
from assay.model.ledger_entry import LedgerEntry


def entry(kind: str, node: str = "n1", **body: Any) -> LedgerEntry:
    return LedgerEntry(id=f"{kind}{node}{body}", at="2026-01-05T08:00:00+00:00", kind=kind, node=node, body=body)


@pytest.fixture
def seen(tmp_path: Path) -> ScenarioObservation:
    world = LabWorld(tmp_path)
    write_json(world.folder("n1") / "state.json", {"flashes": [{"component": "bmc"}, {"component": "bios"}]})
    entries = [
        entry("node.enrolled", state="onboard", pool="p"),
        entry("transition", **{"from": "onboard", "to": "seatrial", "decision": "d1"}),
        entry("transition", **{"from": "seatrial", "to": "zap", "decision": "d2"}),
        entry("fault", **{"class": "gpu.xid.79", "fault": "f1", "subject": "p/n1/gpu0", "severity": "catastrophic"}),
        entry("observe.failed", channel="bmc", reason="no answer within 5 s"),
        entry("effect.intent", effect="e1", action="zap"),
        entry("effect.verified", effect="e1"),
        entry("effect.intent", effect="e2", action="reboot"),
        entry("ticket.opened", ticket="t1", title="GPU 6 is missing", rack="r01"),
        entry("ticket.opened", ticket="t2", title="two cables", rack="r02"),
        entry("ticket.closed", ticket="t2", by="fabric scan"),
    ]
    status = {"n1": {"node": "n1", "state": "zap", "pending": {"to": "draining", "blockers": ["llama (7)"]}}}
    return ScenarioObservation(entries, status, world)


MET: list[dict[str, Any]] = [
    {"state": {"n1": "zap"}},
    {"path": {"n1": ["onboard", "seatrial", "zap"]}},
    {"path": {"n1": ["seatrial", "zap"]}},
    {"waiting": {"n1": "llama"}},
    {"faults": {"n1": "gpu.xid.79"}},
    {"unanswered": {"n1": ["bmc"]}},
    {"effects": {"n1": {"zap": 1}}},
    {"effects": {"n1": {"powercycle": 0}}},
    {"flashes": {"n1": {"bmc": 1, "bios": 1}}},
    {"tickets": [{"mentions": ["GPU 6", "r01"]}]},
    {"tickets": [{"mentions": ["two cables"], "open": False}]},
]

UNMET: list[dict[str, Any]] = [
    {"state": {"n1": "test"}},
    {"state": {"n9": "zap"}},
    {"path": {"n1": ["onboard", "zap"]}},
    {"waiting": {"n1": "mixtral"}},
    {"waiting": {"n9": "llama"}},
    {"faults": {"n1": "gpu.missing"}},
    {"unanswered": {"n1": ["probe"]}},
    {"effects": {"n1": {"zap": 2}}},
    {"effects": {"n1": {"reboot": 1}}},  # journalled, never verified
    {"flashes": {"n1": {"bmc": 2, "bios": 1}}},
    {"flashes": {"n1": {"bmc": 1}}},  # another component was flashed, too
    {"tickets": [{"mentions": ["GPU 6"], "open": False}]},
    {"tickets": [{"mentions": ["two cables"]}]},
    {"tickets": [{"mentions": ["GPU 7"]}]},
    {"tickets": [{"mentions": ["GPU 6"], "count": 2}]},
]


@pytest.mark.parametrize("declared", MET, ids=str)
def test_what_came_out_as_declared_is_met(seen: ScenarioObservation, declared: dict[str, Any]) -> None:
    assert [finding.met for finding in check_expectations(ExpectStep.model_validate(declared), seen)] == [True]


@pytest.mark.parametrize("declared", UNMET, ids=str)
def test_what_came_out_otherwise_is_named_with_what_was_seen(
    seen: ScenarioObservation, declared: dict[str, Any]
) -> None:
    (finding,) = check_expectations(ExpectStep.model_validate(declared), seen)
    assert not finding.met
    assert finding.observed


def test_everything_that_is_declared_gives_a_finding_of_its_own(seen: ScenarioObservation) -> None:
    every = {"state": {"n1": "zap", "n2": "zap"}, "faults": {"n1": "gpu.xid.79"}, "tickets": [{"mentions": ["r01"]}]}
    assert [finding.met for finding in check_expectations(ExpectStep.model_validate(every), seen)] == [
        True,
        False,
        True,
        True,
    ]
