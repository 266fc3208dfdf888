"""How one node compares with the fleet repository, and how far the active rollout is with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.act.loop.sync_reading import ExpectedChecks, read_sync
from assay.decide.drift.sync_report import UNKNOWN_PREFIX, NodeSync, SyncDifference, SyncState
from assay.decide.rollouts.node_progress import NodeProgress, ProgressKind
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout, RolloutHistory, RolloutPause, RolloutStatus
from assay.decide.state.node_state import NodeState
from assay.ledger.ledger_reader import read_projection
from assay.ledger.location import locate_existing_ledger
from assay.model.facts import extend, fact
from assay.model.text.lists import format_count
from assay.model.timestamps import format_minute
from assay.tell.views.records import RecordSource
from assay.tell.views.sources import JUDGING_HASHES, LastFleetCache

if TYPE_CHECKING:
    from assay.decide.rollouts.decide_rollouts import RolloutStep
    from assay.tell.report.status_changes import RolloutWaits


STATE_WORDS: dict[SyncState, str] = {
    "in_sync": "in sync",
    "rolling": "rolling out",
    "drifted": "drifted",
    "held": "held",
    "unknown": "unknown",
}

EXPECTED_CHECKS = LastFleetCache(lambda fleet: ExpectedChecks(fleet, JUDGING_HASHES.find(fleet)))
EXPLAINED = ("waiting", "leaving", "out", "held")
"""How far a node is while the rollout explains its drift. Drift of a node that failed is a failure."""


def find_node_sync(source: RecordSource, state: NodeState) -> NodeSync | None:
    """Return how one node compares; None for a node that the inventory no longer has, or that is gone for good.

    None also for a fleet without a policy: nothing says then what drift is.
    """
    fleet = source.fleet
    if state.node not in fleet.nodes or len(fleet.policies) != 1:
        return None
    ledger, now, checks = source.ledger_for_reading, source.clock.now(), EXPECTED_CHECKS.find(fleet)
    return next(iter(read_sync(fleet, ledger, {state.node: state}, now, [state.node], checks).nodes), None)


def format_node_sync(node: NodeSync) -> Iterator[str]:
    """Yield a line for each difference of one node. What is not known is one line."""
    for item in node.items:
        if item.is_known:
            since = f", since {format_minute(item.since)}" if item.since else ""
            yield f"{STATE_WORDS[node.state]}: {item.what}: {format_difference(item)}{since}"
    yield from (f"remedy of {remedy}" for remedy in node.remedies)
    unknown = [item for item in node.items if not item.is_known]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        yield f"not known to be in sync: {unknown[0].what}: {unknown[0].seen.removeprefix(UNKNOWN_PREFIX)}{more}"


def format_difference(item: SyncDifference) -> str:
    """Return what is wanted and seen of one item, with the place that says it."""
    wanted = f", wanted {item.wanted}" if item.wanted and item.wanted != item.what else ""
    where = f" ({item.where})" if item.where else ""
    return f"{item.seen}{wanted}{where}"


@fact
class RolloutSummary:
    """A rollout: how a merged change comes to its nodes. Times are ISO 8601 with the offset of UTC."""

    id: str
    """The id of the rollout."""
    base: str
    """The commit before the change."""
    commit: str
    """The commit with the change."""
    plan: str
    """The digest (`sha256:…`) of the plan as it was reviewed; "" if nobody recorded it."""
    status: RolloutStatus
    """How it stands; superseded by a later rollout, or aborted by a person."""
    started_at: str
    """When it started."""
    ended_at: str
    """When it ended; "" while it goes on."""
    nodes: int
    """How many nodes must take part."""
    proven: int
    """How many of them serve again and have passed their checks."""
    paused_by: RolloutPause | None
    """Who or what paused it; null if it is not paused."""
    reason: str
    """Why it ended; "" while it goes on."""
    replaced_by: str
    """The id of the rollout that took over its nodes; "" if none did."""


def summarize_rollout(rollout: Rollout) -> RolloutSummary:
    """Return a rollout in short."""
    return extend(
        RolloutSummary,
        rollout,
        nodes=len(rollout.members),
        proven=len(rollout.members) - len(rollout.unproven),
        paused_by=rollout.pause,
        reason=rollout.end_reason,
    )


@fact
class RolloutOfNode(RolloutSummary):
    """The active rollout with this node, or its last if it was aborted before the node was proven; how far it came."""

    progress: ProgressKind
    """How far this node is."""
    why: str
    """What it waits for, what failed, or what proves it; "" if nothing is to be said."""
    change: str
    """What changes on this node."""
    waits_for: str
    """What the rollout as a whole waits for; "" for nothing."""


def find_node_rollout(source: RecordSource, node: str) -> RolloutOfNode | None:
    """Return the active rollout with this node; else its last, if that was aborted before the node was proven.

    A node that a newer rollout did not take over needs nothing of the older one any more. Nothing is written.
    """
    history = _read_rollouts(source)
    rollout = history.find_active() if history else None
    if rollout and node in rollout.members:
        step = _decide_next_step(source, rollout)
        progress = next((member for member in step.progress if member.node == node), None)
        return _describe_progress(rollout, progress, step.waits_for) if progress else None
    past = [rollout for rollout in history.rollouts.values() if node in rollout.members] if history else []
    last = past[-1] if past else None
    if last is None or last.status != "aborted" or node not in last.unproven:
        return None
    return _describe_progress(last, NodeProgress(last.members[node], "left alone", f"over: {last.end_reason}"), "")


def _describe_progress(rollout: Rollout, progress: NodeProgress, waits_for: str) -> RolloutOfNode:
    return extend(
        RolloutOfNode,
        summarize_rollout(rollout),
        progress=progress.kind,
        why=progress.why,
        change=progress.member.reason,
        waits_for=waits_for,
    )


def find_rollout_waits(source: RecordSource) -> RolloutWaits:
    """Return which failures the active rollout explains: drift of the nodes that it has not brought the change to."""
    from assay.decide.drift.comparison import list_drift_checks
    from assay.tell.report.status_changes import NO_ROLLOUT, RolloutWaits

    history = _read_rollouts(source)
    rollout = history.find_active() if history else None
    step = _decide_next_step(source, rollout) if rollout else None
    if rollout is None or step is None:
        return NO_ROLLOUT
    nodes = frozenset(member.node for member in step.progress if member.kind in EXPLAINED)
    return RolloutWaits(rollout.id, nodes, frozenset(check.id for check in list_drift_checks(source.fleet)))


def _read_rollouts(source: RecordSource) -> RolloutHistory | None:
    """Return the rollouts, None without a ledger, or without the one policy that they go by."""
    if not locate_existing_ledger(source.data_dir, is_lab=source.fleet.is_lab) or len(source.fleet.policies) != 1:
        return None
    return read_projection(source.ledger_for_reading, ROLLOUTS)


def _decide_next_step(source: RecordSource, rollout: Rollout) -> RolloutStep:
    from assay.act.rollouts.rollout_advance import find_next_step  # few need it, and all would wait for it

    states = source.read_node_states()
    return find_next_step(source.fleet, source.ledger_for_reading, states, rollout, source.clock.now())[1]


def format_node_rollout(rollout: RolloutOfNode) -> Iterator[str]:
    """Yield the lines for people."""
    head = f"rollout {rollout.id[:8]} ({rollout.base[:8]} → {rollout.commit[:8]}): {rollout.change}"
    yield f"{head}; {rollout.proven} of {format_count(rollout.nodes, 'node')} proven"
    yield f"  this node: {rollout.progress}{f', {rollout.why}' if rollout.why else ''}"
    if rollout.waits_for:
        yield f"  the rollout waits: {rollout.waits_for}"
