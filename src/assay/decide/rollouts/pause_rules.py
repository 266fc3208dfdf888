"""What pauses a rollout without a person, and when such a pause ends by itself.

Failures pause it until a person resumes it. A held node, or a breaker that the rollout did not open, pauses it for as
long as it lasts. A person who resumes it accepts the nodes because of which it was paused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from assay.decide.moves.held_answers import list_open_breakers
from assay.decide.rollouts.node_progress import NodeProgress
from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.state.fleet_snapshot import FleetSnapshot
from assay.model.entries.rollout_entries import PauseRule
from assay.model.text.text_lists import format_nodes

RESUMING_RULES: frozenset[PauseRule] = frozenset({"hold", "breaker"})


@dataclass(frozen=True, slots=True)
class RolloutStop:
    """Why a rollout stops: the rule, one line for people, and the nodes because of which."""

    rule: PauseRule
    reason: str
    nodes: tuple[str, ...]


def find_pause(snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]) -> RolloutStop | None:
    """Return why a running rollout must stop, None if it need not."""
    return (
        _find_failures(snapshot, rollout, progress)
        or _find_hold(rollout, progress)
        or _find_open_breaker(snapshot, rollout, progress)
    )


def find_resumption(snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]) -> str:
    """Return why a paused rollout may go on by itself, "" if it may not."""
    rule = rollout.pause.rule if rollout.pause else ""
    if rule not in RESUMING_RULES or find_pause(snapshot, rollout, progress):
        return ""
    return "no node of it is held any more" if rule == "hold" else "the breaker holds nothing back any more"


def _find_failures(snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]) -> RolloutStop | None:
    """Return the failures that stop it: any of a canary, and too many of the nodes that were ordered out."""
    failed = [one for one in progress if one.kind == "failed" and one.node not in rollout.accepted]
    if not failed:
        return None
    rules, names = snapshot.policy.rollouts, tuple(one.node for one in failed)
    kinds = {view.name: (view.node.spec, view.node.pool) for view in snapshot.nodes}
    proven = Counter(kinds.get(one.node) for one in progress if one.kind == "proven")
    if canaries := [one for one in failed if proven[kinds.get(one.node)] < rules.canaries]:
        return RolloutStop("failures", f"canary {canaries[0].node} failed: {canaries[0].why}", names)
    ordered = sum(bool(one.member.order) for one in progress)
    if len(failed) * 100 < rules.failed_percent * ordered:
        return None
    rate = f"{len(failed)} of {ordered} nodes failed ({format_nodes(names)})"
    return RolloutStop("failures", f"{rate}, {rules.failed_percent:g} % stop it: {failed[0].why}", names)


def _find_hold(rollout: Rollout, progress: Sequence[NodeProgress]) -> RolloutStop | None:
    """Return the hold of a node that was ordered out. A held node that waits for its wave is left out of the waves."""
    held = [one for one in progress if one.kind == "held" and one.member.order and one.node not in rollout.accepted]
    return RolloutStop("hold", f"{held[0].node} is {held[0].why}", tuple(one.node for one in held)) if held else None


def _find_open_breaker(
    snapshot: FleetSnapshot, rollout: Rollout, progress: Sequence[NodeProgress]
) -> RolloutStop | None:
    """Return the open breaker of a pool with nodes to do. If only nodes of this rollout opened it, they failed."""
    breakers = list_open_breakers(view.node_state for view in snapshot.nodes)
    pools = _list_pools_to_do(snapshot, progress) if breakers else ()
    ours = {one.node for one in progress if one.member.order} if breakers else set[str]()
    for breaker in breakers:
        if breaker.pool in pools and not set(breaker.nodes) <= rollout.accepted:
            is_ours = set(breaker.nodes) <= ours
            return RolloutStop("failures" if is_ours else "breaker", breaker.reason, breaker.nodes)
    return None


def _list_pools_to_do(snapshot: FleetSnapshot, progress: Sequence[NodeProgress]) -> Collection[str]:
    pools = {view.name: view.node.pool for view in snapshot.nodes}
    return {pools[one.node] for one in progress if one.kind in ("waiting", "leaving", "out") and one.node in pools}
