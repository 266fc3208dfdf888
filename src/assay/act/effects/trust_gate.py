"""Holds back effects that nobody allows: by the trust step of their action, or because their order is too old.

It asks before an effect enters its queue and before each attempt, whatever decided it, and whenever that was.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.loop.node_state_and_outcome_cache import read_node_states
from assay.act.loop.pass_log import read_passes
from assay.act.loop.rollout_cache import RolloutCache
from assay.decide.state.node_state import NodeState
from assay.decide.trust.order_age import (
    find_outlived,
    is_rollout_outlived,
    list_known_orders,
    make_age_pause,
    make_outlived_entry,
)
from assay.decide.trust.same_machine import find_same_machines
from assay.decide.trust.trust_gate import find_effect_obstacle
from assay.model.timestamps import format_duration

if TYPE_CHECKING:
    from assay.ledger.store import Ledger

STAGES_THAT_LOOK = ("once", "decide", "act")


def must_wait_for_trust(context: ActionContext, intent: EffectIntent, same: Mapping[str, str] | None = None) -> bool:
    """Whether an attempt that would begin now must wait for a person; show why. `same`: see `list_same_machines`."""
    node_state = read_node_states(context.ledger).get(intent.node)
    if node_state is None:  # nobody has said anything about it
        return context.fleet.find_trust(intent.node, [intent.action]).step != "act"
    why, _ = find_effect_obstacle(context.fleet.trust, node_state, intent.decision, intent.action)
    why = why or (list_same_machines(context) if same is None else same).get(intent.node, "")
    if why:
        context.progress(f"{intent.node}: {intent.action}: {why}")
    return bool(why)


def list_same_machines(context: ActionContext) -> dict[str, str]:
    """Return, by node of the inventory, why nothing is done to it: another one answers as the same machine."""
    states = read_node_states(context.ledger)
    return find_same_machines(states[name] for name in context.fleet.nodes if name in states)


def hold_outlived_orders(context: ActionContext, node_states: Mapping[str, NodeState]) -> bool:
    """Record which orders and rollouts have outlived their time. Return whether there are any new ones.

    To be called before anything is decided or done: each pass notes that somebody looked.
    """
    policy, now, ledger = context.fleet.policy, context.clock.now(), context.ledger
    paused = _measure_pause(context)
    entries = [entry for state in node_states.values() for entry in find_outlived(policy, state, now, paused)]
    if paused > timedelta(hours=policy.trust.rollout_hours):
        rollout = RolloutCache(ledger).find_active()
        if rollout and is_rollout_outlived(policy, rollout, now, paused):
            reason = f"no controller looked after it for {format_duration(paused)}"
            entries.append(make_age_pause(rollout, reason, now))
    return any(ledger.append(*entries)) if entries else False


def hold_restored_orders(ledger: Ledger, file: Path, now: datetime) -> None:
    """Let every order that is open in a restored ledger wait for a person: nobody knows what was done since."""
    why = f"the ledger was restored from {file.name}"
    open_orders = {
        (node, order) for node, state in read_node_states(ledger).items() for order in list_known_orders(state)
    }
    entries = [make_outlived_entry(node, order, f"the order: {why}", now) for node, order in sorted(open_orders)]
    rollout = RolloutCache(ledger).find_active()
    if rollout and rollout.status == "running":
        entries.append(make_age_pause(rollout, why, now))
    ledger.append(*entries)


def _measure_pause(context: ActionContext) -> timedelta:
    """Return for how long no pass looked at the fleet, by this machine's clock; very long where nobody knows."""
    passes = read_passes(context.home)
    ends = [passes[stage].ended_s for stage in STAGES_THAT_LOOK if stage in passes]
    return timedelta(seconds=abs(time.time() - max(ends))) if ends else timedelta(days=3650)
