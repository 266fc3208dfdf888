"""What is the collector's fault, or the clock's, is held against no node: real suites, a real ledger, a real decision.

Only what comes from the nodes is made up: their recorded evidence, or the silence of all of them.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.act.ingest import collection as looking
from assay.act.ingest.silent_nodes import record_silence
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.reconcile_pass import observe_nodes, record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.evidence import EvidenceDocument
from assay.observe.evidence_store import EvidenceStore
from assay.validate.must_fail_recordings import read_check_recording
from tests.support.places import ROOT

WELL = read_check_recording(ROOT / "suites" / "recordings", "hgx-h100")["channels"]
DEAD = {channel: {"failed": "no answer within 5 s"} for channel in ("probe", "bmc")}
NODES = [f"n{number:04}" for number in range(3, 5)]


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


class Nodes:
    """What the nodes answer, instead of `stream_evidence`: `channels`, dated `ahead` of the controller's clock."""

    def __init__(self, desk: ControllerContext) -> None:
        self.desk, self.channels, self.ahead = desk, WELL, timedelta()

    def __call__(self, fleet: Any, names: list[str], **_: Any) -> Iterator[EvidenceDocument]:
        at = self.desk.clock.now() + self.ahead
        yield from (EvidenceDocument(name, at, self._of(name)) for name in names)

    def _of(self, name: str) -> dict[str, Any]:
        """Return the channels as this node's, with its own serial number and GUIDs."""
        channels = copy.deepcopy(self.channels)
        if channels == DEAD:
            return channels
        node = self.desk.fleet.nodes[name]
        for adapter, guid in zip(sorted(channels["probe"]["hca"]), node.hca_guids, strict=False):
            channels["probe"]["hca"][adapter]["guid"] = {"value": guid}
        for place in (channels["probe"]["host"], channels["bmc"]["system"]):
            place["serial"] = {"value": node.serial}
        return channels


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[FleetSnapshotCache]:
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    home, ledger = tmp_path / ".assay", Ledger.open(tmp_path / "ledger.sqlite")
    fleet, store = load_fleet(tmp_path), EvidenceStore(home / "evidence")
    memory = FleetSnapshotCache(ControllerContext(fleet, ledger, store, Hands(), home, tmp_path / "reports"))
    enroll_nodes(memory.context)
    memory.take_new_entries()
    later(memory, days=1)
    yield memory
    ledger.close()


@pytest.fixture
def nodes(memory: FleetSnapshotCache, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    nodes = Nodes(memory.context)
    monkeypatch.setattr(looking, "stream_evidence", nodes)
    return nodes


def later(memory: FleetSnapshotCache, **span: float) -> None:
    memory.context.clock.at += timedelta(**span)  # type: ignore[attr-defined]


def held(memory: FleetSnapshotCache) -> list[tuple[str, str]]:
    """Look at the nodes, decide, and return the faults and the moves that are new."""
    observe_nodes(memory, NODES)
    record_silence(memory.context, memory.build_states_snapshot())
    record_decisions(memory)
    return [
        (one.kind, one.node) for one in memory.take_new_entries() if one.kind in ("fault", "decision", "transition")
    ]


def hot(channels: dict[str, Any]) -> dict[str, Any]:
    """Return the channels of a node one of whose GPUs is too hot."""
    ill = copy.deepcopy(channels)
    next(iter(ill["probe"]["gpu"]["devices"].values()))["temperature"]["gpu_c"] = {"value": 120}
    return ill


@pytest.mark.slow
def test_a_collector_that_is_dead_for_two_seconds_and_a_clock_put_back_by_an_hour_move_nobody(
    memory: FleetSnapshotCache, nodes: Nodes
):
    assert held(memory) == []
    later(memory, seconds=1)
    nodes.channels = DEAD
    assert held(memory) == []
    assert {one.outcome.verdict for one in memory.context.ledger.latest(NODES[0])} == {"error"}
    later(memory, hours=-1)
    nodes.channels = WELL
    assert held(memory) == []
    assert {memory.node_states()[name].state for name in NODES} == {"production"}


def test_evidence_that_comes_from_the_future_says_nothing_against_a_node(memory: FleetSnapshotCache, nodes: Nodes):
    said: list[str] = []
    object.__setattr__(memory.context, "progress", said.append)
    nodes.channels, nodes.ahead = hot(WELL), timedelta(hours=2)
    assert held(memory) == []
    assert sum("in the future: left out" in line for line in said) == len(NODES)
    nodes.ahead = timedelta()
    later(memory, hours=3)
    assert {what for what, _ in held(memory)} >= {"fault", "transition"}, "the same of now is held against them"
