"""One node for each state of the default policy, and passes in which assay orders cordons and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.effects import pending_effect_runner
from assay.act.loop.context import ControllerContext
from assay.act.loop.reconcile_pass import compare_cordons, record_decisions, run_outstanding_effects
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import SchedulerAdapter
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

FLEET = replace(load_fleet(ROOT), is_lab=True)
STATES = {f"n{number:04d}": state for number, state in enumerate(FLEET.policy.states, 1)}
"""The state of each node."""
CLOSED = [name for name, state in STATES.items() if not FLEET.policy.is_in_service(state)]
SERVING = [name for name in STATES if name not in CLOSED]


def enrol(folder: Path, workloads: str, connect: Callable[[Node], SchedulerAdapter]) -> FleetSnapshotCache:
    """Enrol each node in its state, as `lifecycle_start` or an import of the inventory does."""
    settings, clock = make_node_settings({"workloads": workloads}), SystemClock()
    like = next(iter(FLEET.nodes.values()))
    nodes = {name: replace(like, name=name, serial=f"s-{name}", settings=settings) for name in STATES}
    ledger, store = Ledger.open(folder / "ledger.sqlite"), EvidenceStore(folder / "evidence")
    ledger.append(*(make_enrolled_entry(name, like.pool, state, clock.now()) for name, state in STATES.items()))
    return FleetSnapshotCache(
        ControllerContext(
            replace(FLEET, nodes=nodes), ledger, store, clock, folder, folder / "reports", connect, lambda _: None
        )
    )


def run_pass(memory: FleetSnapshotCache, patch: pytest.MonkeyPatch) -> None:
    """Compare, decide and act, with cordons only: there are no machines behind these nodes."""
    patch.setattr(pending_effect_runner._EffectRun, "_enqueue_workflows", lambda *_: set())
    compare_cordons(memory, list(STATES))
    run_outstanding_effects(memory, list(STATES))
    record_decisions(memory)
    run_outstanding_effects(memory, list(STATES))
