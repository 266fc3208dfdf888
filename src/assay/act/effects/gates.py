"""Holds effects back that may not begin now. Asked before an effect enters its queue, and again before each attempt.

Four reasons: the order is too old, or the trust step of its action asks for a person; the effect would disturb who
works on the node, because somebody closed it after the decision, or its scheduler cannot be read; as many as may run
at once have begun; another controller works with a newer commit. By the older spec, a node that has the new firmware
would look wrong, and be flashed back.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.effects.effect_journal import PendingEffect
from assay.act.loop.pass_log import read_passes
from assay.act.loop.projections import read_node_states
from assay.adapters.scheduler import group_by_scheduler
from assay.decide.moves.proposals import find_respected_cordon, is_ordered_stay
from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.decide.state.node_state import NodeState
from assay.decide.trust.gate import (
    find_effect_obstacle,
    find_outlived,
    is_rollout_outlived,
    list_known_orders,
    make_age_pause,
    make_outlived_entry,
)
from assay.declare.repository import signed_commits
from assay.ledger.ledger_reader import read_projection
from assay.model.decision import DECLARED_ACTIONS, DISTURBING_ACTIONS
from assay.model.entries.rollouts import CommitAdoptedEntry
from assay.model.timestamps import format_duration

if TYPE_CHECKING:
    from assay.ledger.store import Ledger


def find_newer_commit(context: ActionContext, intent: EffectIntent) -> str:
    """Return the adopted commit that the fleet of this controller is behind, "" if this effect need not wait.

    A commit that this clone does not have counts as newer.
    """
    ours = context.fleet.commit
    if intent.action not in DECLARED_ACTIONS or not ours:
        return ""
    newest = read_projection(context.ledger, ROLLOUTS).adopted
    adopted = CommitAdoptedEntry.read(newest).commit if newest else ours
    if adopted == ours or signed_commits.is_descendant(context.fleet.root, ours, adopted):
        return ""
    return adopted


def describe_wait(commit: str) -> str:
    """Return why an effect waits for a commit."""
    return f"another controller works with the newer commit {commit[:12]}, so assay waits until this clone has it"


def select_undisturbing(
    context: ActionContext, node_states: Mapping[str, NodeState], pending: Sequence[PendingEffect]
) -> list[PendingEffect]:
    """Return the effects that may go on: attempts under way, what disturbs nobody, and what a person ordered.

    The schedulers are asked only about effects that would disturb somebody and whose next attempt has not begun.
    """
    disturbing = {
        effect.intent.node
        for effect in pending
        if effect.begins_attempt and _may_disturb(effect.intent, node_states.get(effect.intent.node))
    }
    waiting = _find_waiting_nodes(context, disturbing)
    return [effect for effect in pending if not (effect.begins_attempt and effect.intent.node in waiting)]


def must_attempt_wait(context: ActionContext, intent: EffectIntent) -> bool:
    """Whether an attempt that would begin now must wait for those who closed the node, or for its scheduler."""
    if intent.action not in DISTURBING_ACTIONS:
        return False
    node_state = read_node_states(context.ledger).get(intent.node)
    return _may_disturb(intent, node_state) and bool(_find_waiting_nodes(context, [intent.node]))


def must_wait_for_room(context: ActionContext, intent: EffectIntent) -> bool:
    """Whether as many effects have begun in the pool or the rack as may run at once.

    The queue counts what runs. What a killed controller began goes on in the world before somebody takes it up.
    """
    node, nodes = context.fleet.nodes[intent.node], context.fleet.nodes
    begun = {
        state.node
        for state in read_node_states(context.ledger).values()
        for effect in state.effects
        if effect.standing in ("intent", "done") and effect.action not in ("cordon", "uncordon")
    }
    in_pool = [nodes[name] for name in nodes.keys() & begun - {node.name} if nodes[name].pool == node.pool]
    in_rack = [other for other in in_pool if (other.site, other.rack) == (node.site, node.rack)]
    limits = context.fleet.policy.limits.effects_at_once
    return len(in_pool) >= limits.pool or len(in_rack) >= limits.rack


def _may_disturb(intent: EffectIntent, node_state: NodeState | None) -> bool:
    is_ordered = node_state is not None and is_ordered_stay(node_state)
    return intent.action in DISTURBING_ACTIONS and not is_ordered


def _find_waiting_nodes(context: ActionContext, names: Iterable[str]) -> set[str]:
    """Return which of these nodes others keep closed, or have a scheduler that does not answer; show why."""
    nodes = [context.fleet.nodes[name] for name in sorted(names)]
    readings = group_by_scheduler(nodes, context.workloads).read_statuses()
    for line in readings.describe_errors():
        context.progress(f"{line}; assay waits")
    waiting = set(readings.errors)
    for name, status in readings.statuses.items():
        foreign = status.foreign_cordon
        if foreign and (reason := find_respected_cordon(context.fleet.policy, foreign)):
            context.progress(f"{name}: closed by others ({reason}), so assay waits")
            waiting.add(name)
    return waiting


STAGES_THAT_LOOK = ("once", "decide", "act")


def must_wait_for_trust(context: ActionContext, intent: EffectIntent) -> bool:
    """Whether an attempt that would begin now must wait for a person; show why."""
    node_state = read_node_states(context.ledger).get(intent.node)
    if node_state is None:  # nobody has said anything about it
        return context.fleet.find_trust(intent.node, [intent.action]).step != "act"
    obstacle, _ = find_effect_obstacle(context.fleet.trust, node_state, intent.decision, intent.action)
    if obstacle:
        context.progress(f"{intent.node}: {intent.action}: {obstacle}")
    return bool(obstacle)


def hold_outlived_orders(context: ActionContext, node_states: Mapping[str, NodeState]) -> bool:
    """Record which orders and rollouts have outlived their time. Return whether there are any new ones.

    To be called before anything is decided or done: each pass notes that somebody looked.
    """
    policy, now, ledger = context.fleet.policy, context.clock.now(), context.ledger
    # for how long no pass looked at the fleet, by this machine's clock; very long where nobody knows
    passes = read_passes(context.home)
    ends = [passes[stage].ended_s for stage in STAGES_THAT_LOOK if stage in passes]
    paused = timedelta(seconds=abs(time.time() - max(ends))) if ends else timedelta(days=3650)
    entries = [entry for state in node_states.values() for entry in find_outlived(policy, state, now, paused)]
    if paused > timedelta(hours=policy.trust.rollout_hours):
        rollout = read_projection(ledger, ROLLOUTS).find_active()
        if rollout and is_rollout_outlived(policy, rollout, now, paused):
            reason = f"no controller looked after it for {format_duration(paused)}"
            entries.append(make_age_pause(rollout, reason, now))
    return any(ledger.append(*entries)) if entries else False


def hold_restored_orders(ledger: Ledger, file: Path, now: datetime) -> None:
    """Let every order that is open in a restored ledger wait for a person: nobody knows what was done since."""
    reason = f"the ledger was restored from {file.name}"
    open_orders = {
        (node, order) for node, state in read_node_states(ledger).items() for order in list_known_orders(state)
    }
    entries = [make_outlived_entry(node, order, f"the order: {reason}", now) for node, order in sorted(open_orders)]
    rollout = read_projection(ledger, ROLLOUTS).find_active()
    if rollout and rollout.status == "running":
        entries.append(make_age_pause(rollout, reason, now))
    ledger.append(*entries)
