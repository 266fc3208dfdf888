"""Holds decisions back by their trust step, and lists those that wait.

At `watch` they are only recorded, at `suggest` they wait for a yes. A decision has the lowest step of the actions that
it begins; bookkeeping begins none. Also found are orders that have outlived their time. Where another machine answers
for a node, an order for the node might reach that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from assay.decide.faults.identity import find_identity_obstacle
from assay.decide.moves.cordons import RECORDON_REMEDY
from assay.decide.moves.proposals import Proposal, list_arrival_actions, refuse_proposal
from assay.decide.rollouts.rollout_history import RULE_NAMES, Rollout
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.decide.trust.record import AGE_CAUSE, APPROVED_CAUSE, TRUST_CAUSE, HeldDecision
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.decision import (
    CONFIGURE,
    CONFIGURE_IDLE,
    DRAIN_ACTIONS,
    FREE_ACTIONS,
    LOOKING_ACTIONS,
    PAPERWORK,
    PERSON_RULE,
    DecisionCause,
)
from assay.model.entries.node_entries import OrderOutlivedEntry
from assay.model.entries.rollouts import RolloutPausedEntry
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.trust_rules import Trust, TrustSetting
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time

RECORD_ACTIONS = {
    CONFIGURE: (CONFIGURE,),
    CONFIGURE_IDLE: ("cordon", CONFIGURE, "uncordon"),
    RECORDON_REMEDY: ("cordon",),
}
"""The actions of decisions that move no node, by their remedy."""


def ask_trust(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> tuple[Proposal, DecisionCause | None]:
    """Return the proposal, with the yes of a person where it needed one, and what holds it back, None if nothing."""
    actions, pending = _list_actions(snapshot, view, proposal), view.node_state.pending
    order = None  # a person's word behind the pending decision that the proposal carries out
    if pending and any(cause.kind == "decision" and cause.id == pending.decision for cause in proposal.causes):
        order = view.node_state.trust.find_order(pending.decision)
    is_record = proposal.timing == "record" and not actions
    if not is_record and (stranger := find_identity_obstacle(view.node_state, actions)):
        return proposal, DecisionCause("machine", view.name, stranger)
    if order and (late := view.node_state.trust.find_outlived(order.order)):
        return proposal, DecisionCause(AGE_CAUSE, order.order, late)
    pool, state = view.node.pool, view.node_state.state
    setting = find_move_trust(snapshot.trust, snapshot.policy, pool, state, proposal.to, actions)
    if setting is None or setting.step == "act" or is_record:
        return proposal, None
    is_watching = setting.step == "watch"
    text = f"assay only watches ({setting}), and would do" if is_watching else f"waits for a person's yes ({setting})"
    words = f"{text}: {', '.join(actions) or 'no action'} → {proposal.to}"
    obstacle = DecisionCause(TRUST_CAUSE, " ".join([setting.step, *actions]), words)
    if is_watching:
        return proposal, obstacle
    if order or proposal.rule_name == PERSON_RULE or any(cause.kind == "certified" for cause in proposal.causes):
        return proposal, None
    record = refuse_proposal(snapshot, view, proposal, obstacle)
    consent = view.node_state.trust.find_consent(record.id)
    within = consent.within_hours if consent else 0
    if not (
        consent and consent.is_yes and is_in_time(consent.at, within or snapshot.trust.rules.order_hours, snapshot.now)
    ):
        return proposal, obstacle
    yes = DecisionCause(APPROVED_CAUSE, consent.id, f"{consent.who} said yes: {consent.reason}")
    return replace(proposal, causes=(*proposal.causes, yes)), None


def find_move_trust(
    trust: Trust, policy: LifecyclePolicy, pool: str, state: str, to: str, actions: tuple[str, ...] = ()
) -> TrustSetting | None:
    """Return the trust step of a move with its actions, those on arrival by default; None for mere bookkeeping."""
    actions = actions or tuple(
        action for action in policy.states[to].entry if to != state and action not in FREE_ACTIONS
    )
    is_bookkeeping = not actions and not (policy.is_in_service(state) or policy.is_in_service(to))
    return None if is_bookkeeping else trust.find(pool, actions)


def find_effect_obstacle(trust: Trust, node_state: NodeState, decision: str, action: str) -> tuple[str, str]:
    """Return why an effect may not begin, and what a person must say yes to; "" twice if it may begin.

    Raising the trust step is what helps where only the reason is given.
    """
    record, certified = node_state.trust, node_state.certified
    order = record.find_order(decision)
    if action in PAPERWORK:
        return "", ""
    if stranger := find_identity_obstacle(node_state, [action]):
        return stranger, ""
    if order and (late := record.find_outlived(order.order)):
        return late, order.order
    setting = trust.find(node_state.pool, [action])
    if setting.step == "watch":
        return f"assay only watches ({setting})", ""
    has_yes = (order and order.kind != "rollout") or (certified and certified.id == decision)
    if setting.step == "act" or has_yes or action in LOOKING_ACTIONS:
        return "", ""
    return f"waits for a person's yes ({setting})", decision


def is_in_time(at: str, within_hours: float, now: datetime) -> bool:
    """Whether what a person said at a time (ISO 8601) is still meant. A time in the future comes from a wrong clock."""
    return -MAX_CLOCK_SKEW <= now - parse_time(at) <= hours(within_hours)


def _list_actions(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> tuple[str, ...]:
    if proposal.timing == "record":
        return RECORD_ACTIONS.get(proposal.remedy, ())
    entry = list_arrival_actions(snapshot, view, proposal)
    waiting = snapshot.policy.actions_while_pending(proposal.rule_name) if proposal.timing == "pending" else []
    return tuple(action for action in dict.fromkeys([*waiting, *entry]) if action not in FREE_ACTIONS)


def find_outlived(
    policy: LifecyclePolicy, node_state: NodeState, now: datetime, paused: timedelta
) -> Iterator[LedgerEntry]:
    """Yield an entry for each order that has outlived its time by now. `paused`: since when no controller looked."""
    rules = policy.trust
    for order, given_at, last_step, within_hours, has_begun in _list_open_orders(policy, node_state):
        meant = hours(within_hours or rules.order_hours)
        age = now - parse_time(last_step)
        if age < -MAX_CLOCK_SKEW:
            because = f"its time, {format_minute(last_step)}, lies in the future: a clock was changed"
        elif age > meant and (paused > meant or not has_begun):
            because = (
                f"it was meant for {format_duration(meant)}, and {'did not go on' if has_begun else 'had not begun'}"
            )
        else:
            continue
        yield make_outlived_entry(node_state.node, order, f"the order of {format_minute(given_at)}: {because}", now)


def make_outlived_entry(node: str, order: str, reason: str, now: datetime) -> LedgerEntry:
    """Return the entry that lets an order wait for a person."""
    outlived = OrderOutlivedEntry(order, f"{reason}; give it again, or: assay approve {order[:12]}")
    return outlived.make_entry(derive_id(outlived.kind, order, format_time(now)), format_time(now), node)


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
    behind = [ordered for decision in decisions if (ordered := node_state.trust.find_order(decision))]
    request = {node_state.move_request.id} if node_state.move_request else set()
    return request | {ordered.order for ordered in behind}


def _list_open_orders(policy: LifecyclePolicy, node_state: NodeState) -> Iterator[tuple[str, str, str, float, bool]]:
    """Yield id, time, time of the last step, hours and whether it has begun, of each order that does not wait yet."""
    record = node_state.trust
    pending = node_state.pending
    request = node_state.move_request
    decision = pending.decision if pending else node_state.decision
    behind = record.find_order(decision)
    order = request.id if request else behind.order if behind else ""
    if not order or record.find_outlived(order):
        return
    if (
        not request
        and not pending
        and all(effect.is_started for effect in list_outstanding_effects(policy, node_state))
    ):
        return
    begun = [ordered.at for ordered in record.ordered if ordered.order == order]
    steps = [effect.at for effect in node_state.effects if effect.decision == decision] if begun else []
    yes = [consent for consent in record.consents if order in (consent.id, consent.decision) and consent.is_yes]
    is_rollout = bool(request.rollout) if request else behind is not None and behind.kind == "rollout"
    within = (request.within_hours if request else 0.0) or (yes[-1].within_hours if yes else 0.0)
    given = request.at if request else begun[0]
    last = max([given, *begun, *steps, *(consent.at for consent in yes)])
    yield order, given, last, within or (policy.trust.rollout_hours if is_rollout else 0.0), bool(begun)


@frozen
class TrustWait:
    """One thing that waits for a person, or that assay only watches.

    `id`: what `assay approve` and `assay decline` name. `node`: the name of the node. `kind`: decision, effect; order:
    an earlier yes does not count; would: it takes no yes, because assay only watches there. `since`: ISO 8601 UTC.
    `text`: what would be done, and why it waits. `actions`: what would be done. `said`: the last yes or no, with the
    name of who said it, "" without one. `undo`: what undoes it, in words.
    """

    id: str
    node: str
    kind: Literal["would", "decision", "effect", "order"]
    since: str
    text: str
    actions: tuple[str, ...] = ()
    said: str = ""
    undo: str = ""


def list_trust_waits(policy: LifecyclePolicy, trust: Trust, node_state: NodeState) -> list[TrustWait]:
    """Return what waits on a node, the newest decision to each state only."""
    record, node = node_state.trust, node_state.node
    held = {decision.to: decision for decision in record.held if _is_current(trust, node_state, decision)}
    waits = []
    for decision in held.values():
        step, *actions = decision.told
        kind: Literal["would", "decision"] = "would" if step == "watch" else "decision"
        waits.append(TrustWait(decision.decision, node, kind, decision.at, decision.text, tuple(actions)))
    waits += _list_effect_waits(policy, trust, node_state)
    return [_add_word(node_state, wait) for wait in waits]


def _is_current(trust: Trust, node_state: NodeState, held: HeldDecision) -> bool:
    """Whether what a decision would answer is still there, and its trust step is what it was."""
    open_faults = {fault.id for fault in node_state.faults if fault.is_open and not node_state.is_repaired(fault)}
    is_same_step = trust.find(node_state.pool, held.told[1:]).step == held.told[0]
    return is_same_step and (not held.faults or bool(open_faults & set(held.faults)))


def _list_effect_waits(policy: LifecyclePolicy, trust: Trust, node_state: NodeState) -> Iterator[TrustWait]:
    """Yield the first of what is decided and waits: an order or a pending decision that is too old, or an effect.

    What follows a drain that nobody can tell to be done waits for a person, who takes it for done.
    """
    node = node_state.node
    record = node_state.trust
    request = node_state.move_request
    behind = record.find_order(node_state.pending.decision) if node_state.pending else None
    order = request.id if request else behind.order if behind else ""
    if late := record.find_outlived(order):
        yield TrustWait(order, node, "order", request.at if request else behind.at if behind else "", late)
        return
    outstanding = list_outstanding_effects(policy, node_state)
    for effect in outstanding:
        known = node_state.find_effect(effect.decision, effect.action)
        waiting = [other.action for other in outstanding if not other.is_started]
        held = tuple(action for action in waiting if action not in LOOKING_ACTIONS)
        is_unknown = known is not None and known.standing == "unknown" and known.action in DRAIN_ACTIONS
        if known and is_unknown and (held or policy.states[node_state.state].until_idle):
            rest = f"{', '.join(held)} would go on" if held else f"it would leave {node_state.state}"
            text = f"{known.action} is not known to be done: {known.reason}; with a person's yes, {rest} without proof"
            yield TrustWait(known.decision, node, "order", known.at, text, held)
            return
        obstacle, ident = find_effect_obstacle(trust, node_state, effect.decision, effect.action)
        if obstacle and not effect.is_started:
            kind: Literal["would", "effect"] = "effect" if ident else "would"
            words = (node_state.since, f"{effect.action} {obstacle}", (effect.action,))
            yield TrustWait(ident or effect.decision, node, kind, *words)
            return


def _add_word(node_state: NodeState, wait: TrustWait) -> TrustWait:
    consent = node_state.trust.find_consent(wait.id)
    if consent is None:
        return wait
    words = f"{consent.who} said {'yes' if consent.is_yes else 'no'} at {consent.at[:16]}: {consent.reason}"
    return replace(wait, said=words)
