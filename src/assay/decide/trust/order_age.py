"""Finds orders that have outlived their time: they were not begun in time, or nothing went on while assay was paused.

What was begun goes on for as long as it takes, such as a drain for a customer's job, while a controller looks after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.rollouts.step_entries import RULE_NAMES
from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.entries.operator_entries import OrderOutlivedEntry
from assay.model.entries.rollout_entries import RolloutPausedEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time


def find_outlived(
    policy: LifecyclePolicy, node_state: NodeState, now: datetime, paused: timedelta
) -> Iterator[LedgerEntry]:
    """Yield an entry for each order that has outlived its time by now. `paused`: since when no controller looked."""
    rules = policy.trust
    for order, given_at, last_step, within_hours, has_begun in _list_open_orders(policy, node_state):
        meant = hours(within_hours or rules.order_hours)
        age = now - parse_time(last_step)
        if age < -MAX_CLOCK_SKEW:
            why = f"its time, {format_minute(last_step)}, lies in the future: a clock was changed"
        elif age > meant and (paused > meant or not has_begun):
            why = f"it was meant for {format_duration(meant)}, and {'did not go on' if has_begun else 'had not begun'}"
        else:
            continue
        yield make_outlived_entry(node_state.node, order, f"the order of {format_minute(given_at)}: {why}", now)


def make_outlived_entry(node: str, order: str, reason: str, now: datetime) -> LedgerEntry:
    """Return the entry that lets an order wait for a person."""
    told = OrderOutlivedEntry(order, f"{reason}; give it again, or: assay approve {order[:12]}")
    return told.make_entry(derive_id(told.kind, order, format_time(now)), format_time(now), node)


def is_rollout_outlived(policy: LifecyclePolicy, rollout: Rollout, now: datetime, paused: timedelta) -> bool:
    """Whether a running rollout has stood still for longer than it is meant, because no controller looked after it."""
    last = max(rollout.started_at, *(member.ordered_at for member in rollout.members.values()))
    meant = hours(policy.trust.rollout_hours)
    return rollout.status == "running" and paused > meant and now - parse_time(last) > meant


def make_age_pause(rollout: Rollout, reason: str, now: datetime) -> LedgerEntry:
    """Return the entry that pauses a rollout until a person resumes it."""
    held = RolloutPausedEntry(rollout.id, RULE_NAMES["age"], reason, "age")
    return held.make_entry(derive_id(held.kind, rollout.id, str(rollout.pauses)), format_time(now))


def list_known_orders(node_state: NodeState) -> set[str]:
    """Return the ids of the orders for a node that may be open, whatever the policy leaves to do."""
    decisions = (node_state.decision, node_state.pending.decision if node_state.pending else "")
    behind = [one for decision in decisions if (one := node_state.trust.find_order(decision))]
    request = {node_state.move_request.id} if node_state.move_request else set()
    return request | {one.order for one in behind}


def _list_open_orders(policy: LifecyclePolicy, node_state: NodeState) -> Iterator[tuple[str, str, str, float, bool]]:
    """Yield id, time, time of the last step, hours and whether it has begun, of each order that does not wait yet."""
    record, pending, request = node_state.trust, node_state.pending, node_state.move_request
    decision = pending.decision if pending else node_state.decision
    behind = record.find_order(decision)
    order = request.id if request else behind.order if behind else ""
    if not order or record.find_outlived(order):
        return
    if not request and not pending and all(one.is_started for one in list_outstanding_effects(policy, node_state)):
        return
    begun = [one.at for one in record.ordered if one.order == order]
    steps = [effect.at for effect in node_state.effects if effect.decision == decision] if begun else []
    yes = [one for one in record.consents if order in (one.id, one.decision) and one.is_yes]
    is_rollout = bool(request.rollout) if request else behind is not None and behind.kind == "rollout"
    within = (request.within_hours if request else 0.0) or (yes[-1].within_hours if yes else 0.0)
    given = request.at if request else begun[0]
    last = max([given, *begun, *steps, *(one.at for one in yes)])
    yield order, given, last, within or (policy.trust.rollout_hours if is_rollout else 0.0), bool(begun)
