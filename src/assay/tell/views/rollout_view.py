"""One rollout: how far each node is, what it waits for, and the waves to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from assay.act.rollouts.rollout_advance import RolloutReport, report_rollout
from assay.decide.rollouts.node_progress import PROGRESS_KINDS
from assay.decide.rollouts.rollout_history import Rollout
from assay.tell.views.records import LiveRecords

STILL_OPEN = ("failed", "held", "out", "leaving", "waiting", "left alone", "proven", "")
"""The order in which nodes are listed: what needs people first."""


@dataclass(frozen=True, slots=True)
class NodeInWave:
    """A node of a rollout: how far it is ("" after the rollout's end), why, and what the change is."""

    node: str
    progress: str
    reason: str
    change: str


@dataclass(frozen=True, slots=True)
class RolloutView:
    """A rollout with its report. `counts` are its nodes by progress. `hours_left` is None once it has ended."""

    rollout: Rollout
    proven: int
    counts: Mapping[str, int]
    nodes: tuple[NodeInWave, ...]
    waves: tuple[tuple[str, ...], ...]
    waits_for: str
    hours_left: float | None


def find_rollout(records: LiveRecords, ident: str) -> Rollout | None:
    """Return the rollout of an id, or of the begin of one; None if there is none, or more than one."""
    known = records.read_rollouts().rollouts
    matches = [rollout for name, rollout in known.items() if name.startswith(ident)] if ident else []
    return known.get(ident) or (matches[0] if len(matches) == 1 else None)


def build_rollout_view(records: LiveRecords, rollout: Rollout) -> RolloutView:
    """Return the view of a rollout, by the records of now."""
    ledger, states = records.ledger_for_reading, records.read_node_states()
    report = report_rollout(records.fleet, ledger, states, rollout, records.clock.now())
    nodes = sorted(_list_nodes(report), key=lambda node: (STILL_OPEN.index(node.progress), node.node))
    counts = Counter(node.progress for node in nodes)
    return RolloutView(
        rollout=rollout,
        proven=len(rollout.members) - len(rollout.unproven),
        counts={kind: counts[kind] for kind in PROGRESS_KINDS if counts[kind]},
        nodes=tuple(nodes),
        waves=tuple(tuple(wave.nodes) for wave in report.waves),
        waits_for=report.step.waits_for if report.step else "",
        hours_left=report.hours_left,
    )


def _list_nodes(report: RolloutReport) -> list[NodeInWave]:
    progress = {member.node: member for member in report.step.progress} if report.step else {}
    return [
        NodeInWave(name, progress[name].kind, progress[name].why, member.reason)
        if name in progress
        else NodeInWave(name, "proven" if member.proof else "", member.proof, member.reason)
        for name, member in report.rollout.members.items()
    ]
