"""Holds decisions back by their trust step: at `watch` they are only recorded, at `suggest` they wait for a yes.

A decision has the lowest step of the actions that it begins. One that begins none, and neither leaves service nor
returns, is bookkeeping, and is made at any step.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from assay.decide.moves.lost_cordons import RECORDON_REMEDY
from assay.decide.moves.proposals import Proposal, refuse_proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.decide.trust.trust_record import AGE_CAUSE, APPROVED_CAUSE, TRUST_CAUSE, OrderedDecision
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.decision import CONFIGURE, CONFIGURE_IDLE, PERSON_RULE, DecisionCause
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.trust_rules import QUIET_ACTIONS, Trust, TrustSetting
from assay.model.timestamps import hours, parse_time

RECORD_ACTIONS = {
    CONFIGURE: (CONFIGURE,),
    CONFIGURE_IDLE: ("cordon", CONFIGURE, "uncordon"),
    RECORDON_REMEDY: ("cordon",),
}
"""The actions of decisions that move no node, by their remedy."""


def ask_trust(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> tuple[Proposal, DecisionCause | None]:
    """Return the proposal, with the yes of a person where it needed one, and what holds it back, None if nothing."""
    actions, order = _list_actions(snapshot, view, proposal), _find_order(view, proposal)
    is_record = proposal.timing == "record" and not actions
    if not is_record and (twins := snapshot.same_machines.get(view.name)):
        return proposal, DecisionCause("machine", view.name, twins)
    if order and (late := view.node_state.trust.find_outlived(order.order)):
        return proposal, DecisionCause(AGE_CAUSE, order.order, late)
    pool, state = view.node.pool, view.node_state.state
    setting = find_move_trust(snapshot.trust, snapshot.policy, pool, state, proposal.to, actions)
    if setting is None or setting.step == "act" or is_record:
        return proposal, None
    is_watching = setting.step == "watch"
    text = f"assay only watches ({setting}), and would do" if is_watching else f"waits for a person's yes ({setting})"
    words = f"{text}: {', '.join(actions) or 'no action'} → {proposal.to}"
    why = DecisionCause(TRUST_CAUSE, " ".join([setting.step, *actions]), words)
    if is_watching:
        return proposal, why
    if order or proposal.rule_name == PERSON_RULE or any(cause.kind == "certified" for cause in proposal.causes):
        return proposal, None
    record = refuse_proposal(snapshot, view, proposal, why)
    consent = view.node_state.trust.find_consent(record.id)
    within = consent.within_hours if consent else 0
    if not (
        consent and consent.is_yes and is_in_time(consent.at, within or snapshot.trust.rules.order_hours, snapshot.now)
    ):
        return proposal, why
    yes = DecisionCause(APPROVED_CAUSE, consent.id, f"{consent.who} said yes: {consent.reason}")
    return replace(proposal, causes=(*proposal.causes, yes)), None


def find_move_trust(
    trust: Trust, policy: LifecyclePolicy, pool: str, state: str, to: str, actions: tuple[str, ...] = ()
) -> TrustSetting | None:
    """Return the trust step of a move with its actions, those on arrival by default; None for mere bookkeeping."""
    actions = actions or tuple(one for one in policy.states[to].entry if to != state and one not in QUIET_ACTIONS)
    is_bookkeeping = not actions and not (policy.is_in_service(state) or policy.is_in_service(to))
    return None if is_bookkeeping else trust.find(pool, actions)


def find_effect_obstacle(trust: Trust, node_state: NodeState, decision: str, action: str) -> tuple[str, str]:
    """Return why an effect may not begin, and what a person must say yes to; "" twice if it may begin.

    Raising the trust step is what helps where only the reason is given.
    """
    record, certified = node_state.trust, node_state.certified
    order = record.find_order(decision)
    if action in QUIET_ACTIONS:
        return "", ""
    if order and (late := record.find_outlived(order.order)):
        return late, order.order
    setting = trust.find(node_state.pool, [action])
    if setting.step == "watch":
        return f"assay only watches ({setting})", ""
    has_yes = (order and order.kind != "rollout") or (certified and certified.id == decision)
    if setting.step == "act" or has_yes:
        return "", ""
    return f"waits for a person's yes ({setting})", decision


def is_in_time(at: str, within_hours: float, now: datetime) -> bool:
    """Whether what a person said at a time (ISO 8601) is still meant. A time in the future comes from a wrong clock."""
    return -MAX_CLOCK_SKEW <= now - parse_time(at) <= hours(within_hours)


def _list_actions(snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal) -> tuple[str, ...]:
    if proposal.timing == "record":
        return RECORD_ACTIONS.get(proposal.remedy, ())
    entry = snapshot.policy.states[proposal.to].entry if proposal.to != view.node_state.state else []
    waiting = snapshot.policy.actions_while_pending(proposal.rule_name) if proposal.timing == "pending" else []
    return tuple(one for one in dict.fromkeys([*waiting, *entry]) if one not in QUIET_ACTIONS)


def _find_order(view: NodeSnapshot, proposal: Proposal) -> OrderedDecision | None:
    """Return the person's word behind a pending decision that this proposal carries out, None without one."""
    pending = view.node_state.pending
    is_carried_out = pending and any(one.kind == "decision" and one.id == pending.decision for one in proposal.causes)
    return view.node_state.trust.find_order(pending.decision) if pending and is_carried_out else None
