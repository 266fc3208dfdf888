"""Judges after each slot how long ago idle verification covered each GPU; history keeps the measurements.

A node that was visited is judged at once, any other once a day: a node that no visit reaches is the one to be told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

from assay.act.ingest.suite_runs import judge_phase
from assay.act.loop.context import ControllerContext
from assay.act.loop.node_state_and_outcome_cache import read_latest_outcomes
from assay.act.schedules.idle_visits import find_gpu_slots, open_coverage
from assay.decide.state.coverage_readings import describe_coverage
from assay.decide.state.load_coverage import GpuCoverage
from assay.decide.state.node_state import NodeState
from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.reading import ReadingTree
from assay.model.timestamps import parse_time
from assay.observe.evidence_store import EvidenceStore

PHASE = "idle"
CHANNEL = "coverage"
EACH = timedelta(days=1)


def judge_coverage(
    context: ControllerContext,
    parts: Sequence[str],
    nodes: Sequence[Node],
    visited: Collection[str],
    states: Mapping[str, NodeState],
    folder: Path,
) -> None:
    """Judge those of `nodes` that are due by the checks of the phase `idle`. `folder`: for their evidence meanwhile."""
    declared = (check for catalog in context.fleet.check_catalogs.values() for check in catalog.checks)
    if not any(PHASE in check.phases for check in declared):
        return
    due = set(_find_due(context, [node.name for node in nodes], visited))
    store = EvidenceStore(folder)
    judged = [node.name for node in nodes if node.name in due and _store_evidence(context, store, node, parts, states)]
    if judged:
        judge_phase(context, judged, PHASE, store.folder / "latest")
    rmtree(folder, ignore_errors=True)


def _find_due(context: ControllerContext, names: Sequence[str], visited: Collection[str]) -> Iterator[str]:
    before = parse_time(context.now) - EACH
    for name, outcomes in read_latest_outcomes(context.ledger, names).items():
        seen = [parse_time(one.seen_at) for one in outcomes if PHASE in one.outcome.phases and one.seen_at]
        if name in visited or not seen or max(seen) <= before:
            yield name


def _store_evidence(
    context: ControllerContext, store: EvidenceStore, node: Node, parts: Sequence[str], states: Mapping[str, NodeState]
) -> bool:
    """Store the node's newest evidence with its coverage. A node that was never read has none, and is not judged."""
    known = context.evidence.latest(node.name)
    if known is None:
        return False
    coverage = read_coverage(context, node, parts, states[node.name])
    channels = {**known.channels, CHANNEL: coverage}
    store.store_latest(EvidenceDocument(node.name, context.clock.now(), channels, context.ledger.head()))
    return True


def read_coverage(context: ControllerContext, node: Node, parts: Sequence[str], state: NodeState) -> ReadingTree:
    """Return the coverage of the node's GPUs by slot, by the ledger."""
    slots = find_gpu_slots(context, node)
    with open_coverage(context) as known:
        gpus = {slot: known.get(name) or GpuCoverage(name) for slot, name in slots.items()}
        return describe_coverage(gpus, parts, parse_time(state.since), context.clock.now())
