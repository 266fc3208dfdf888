"""One rollout: how far each node is, what it waits for, and the waves to come."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from assay.act.rollouts.rollout_advance import RolloutReport, report_rollout
from assay.decide.rollouts.node_progress import PROGRESS_KINDS, ProgressKind
from assay.decide.rollouts.rollout_history import Rollout
from assay.model.facts import extend, fact
from assay.tell.views.node_sync import RolloutSummary, summarize_rollout
from assay.tell.views.records import LiveRecords

STILL_OPEN = ("failed", "held", "out", "leaving", "waiting", "left alone", "proven", "")
"""The order in which nodes are listed: what needs people first."""


@fact
class RolloutProgress(RolloutSummary):
    """A rollout, what it waits for, and how long it will still take."""

    waits_for: str
    """What it waits for; "" for nothing, and once it has ended."""
    hours_left: float | None
    """About how many hours it will still take; null once it has ended, or if nothing tells it."""


@fact
class RolloutNode:
    """A node that takes part in a rollout."""

    node: str
    """The name of the node."""
    progress: ProgressKind | Literal[""]
    """How far it is; "" for a node that had not come back when the rollout ended."""
    why: str
    """What it waits for, what failed, or what proves that it is back; "" if there is nothing to say."""
    to: str
    """The state that brings the change: the node is sent there."""
    change: str
    """What changes on it."""
    ordered_at: str
    """When it was sent there: ISO 8601 with the offset of UTC; "" before that."""


@fact
class ComingWave:
    """A wave: nodes that leave service together."""

    number: int
    """Its number among the waves to come, from 1."""
    canary: bool
    """Whether it is a small trial."""
    nodes: list[str]
    """Its nodes."""


@fact
class RolloutShowAnswer:
    """How far one rollout is: each node, and the waves to come."""

    rollout: RolloutProgress
    """The rollout."""
    counts: dict[str, int]
    """How many nodes are how far; without those that had not come back when the rollout ended."""
    nodes: list[RolloutNode]
    """Each node that takes part: those first that need people."""
    waves: list[ComingWave]
    """The waves to come, in order."""


def find_rollout(records: LiveRecords, ident: str) -> Rollout | None:
    """Return the rollout of an id, or of the begin of one; None if there is none, or more than one."""
    known = records.read_rollouts().rollouts
    matches = [rollout for name, rollout in known.items() if name.startswith(ident)] if ident else []
    return known.get(ident) or (matches[0] if len(matches) == 1 else None)


def show_rollout(records: LiveRecords, rollout: Rollout) -> RolloutShowAnswer:
    """Return how far a rollout is, by the records of now."""
    ledger, states = records.ledger_for_reading, records.read_node_states()
    return make_rollout_answer(report_rollout(records.fleet, ledger, states, rollout, records.clock.now()))


def make_rollout_answer(report: RolloutReport) -> RolloutShowAnswer:
    """Return a report as `assay rollout show --format json` and the page show it."""
    rollout, step = report.rollout, report.step
    progress = {member.node: member for member in step.progress} if step else {}
    nodes = [
        RolloutNode(
            node=name,
            progress=progress[name].kind if name in progress else "proven" if member.proof else "",
            why=progress[name].why if name in progress else member.proof,
            to=member.to,
            change=member.reason,
            ordered_at=member.ordered_at,
        )
        for name, member in rollout.members.items()
    ]
    counts = Counter(node.progress for node in nodes)
    waits_for = step.waits_for if step else ""
    return RolloutShowAnswer(
        rollout=extend(RolloutProgress, summarize_rollout(rollout), waits_for=waits_for, hours_left=report.hours_left),
        counts={kind: counts[kind] for kind in PROGRESS_KINDS if counts[kind]},
        nodes=sorted(nodes, key=lambda node: (STILL_OPEN.index(node.progress), node.node)),
        waves=[ComingWave(wave.number + 1, wave.canary, list(wave.nodes)) for wave in report.waves],
    )
