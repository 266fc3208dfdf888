"""Cordons nodes again that somebody opened: a person, a script, or a restart of the scheduler.

An open node gets customers' jobs, even in the middle of a repair. The policy says how often, in how many hours, assay
cordons a node again. After that, assay leaves the node to people until the window has room again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.decide.moves.proposals import Proposal, grant_proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import EffectRecord, LostCordon, NodeState
from assay.model.decision import REPAIR_ACTIONS, ActionName, Decision, DecisionCause
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_duration, format_minute, hours, parse_time

CORDONING_ACTIONS: tuple[ActionName, ...] = ("cordon", "drain", "drain-now")
RECORDON_REMEDY = "cordon"
"""The remedy of a decision that cordons a node again."""
CORDONS_RULE = "cordons"


def propose_recordon(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield a new cordon of the node, or a ticket that asks people to find out who opens it.

    Yields nothing if a person holds the node, its profile forbids cordons, or its scheduler does not answer.
    """
    effect = find_cordon_effect(snapshot.policy, view.node_state)
    if effect is None or view.cordon != "" or view.node_state.hold or "cordon" not in view.profile.actions:
        return
    policy, lost = snapshot.policy.cordons, view.node_state.lost_cordons
    recent = [one for one in lost if snapshot.now - parse_time(one.at) < hours(policy.window_hours)]
    seen = f"{effect.action} of {format_minute(effect.at)} is gone: its scheduler reads it as open for jobs"
    seen += f", with {', '.join(view.jobs)} on it" if view.jobs else ""
    if len(recent) < policy.again:
        text = f"{seen}; closed again ({len(recent) + 1} of {policy.again} in {policy.window_hours:g} h)"
        kind, remedy = "effect", RECORDON_REMEDY
    else:
        text, kind, remedy = f"{seen}; {_describe_escalation(snapshot, recent)}", "opened", "ticket"
    causes = (DecisionCause(kind, effect.id, text),)
    yield Proposal(view.node_state.state, "record", CORDONS_RULE, CORDONS_RULE, causes, (effect.id,), remedy)


def _describe_escalation(snapshot: FleetSnapshot, recent: Sequence[LostCordon]) -> str:
    first = min(parse_time(one.at) for one in recent)
    until = first + hours(snapshot.policy.cordons.window_hours)
    return (
        f"opened {len(recent)} times in {format_duration(snapshot.now - first)} and closed again each time, "
        f"so it is left open until {until:%Y-%m-%d %H:%M} UTC: find who opens it (slurmctld's log, the API server's "
        "audit log), or `assay hold` it"
    )


def decide_recordons(snapshot: FleetSnapshot) -> list[Decision]:
    """Return the decisions that cordon nodes again. They need no other evidence, so they may be made at any time."""
    decisions = [
        (view, grant_proposal(snapshot, view, proposal))
        for view in snapshot.nodes
        for proposal in propose_recordon(snapshot, view)
        if proposal.remedy == RECORDON_REMEDY and view.name not in snapshot.same_machines
        if snapshot.trust.find(view.node.pool, ("cordon",)).step == "act"
    ]
    return [decision for view, decision in decisions if decision.id not in view.node_state.decision_ids]


def find_cordon_effect(policy: LifecyclePolicy, node_state: NodeState) -> EffectRecord | None:
    """Return the effect that cordoned a node which must be cordoned now.

    None if the node need not be cordoned, or if a cordon is under way. A node must be cordoned from its cordon until it
    returns to service: in every state that does not serve, and in service while a decision is pending that cordons it.
    """
    state = policy.states.get(node_state.state)
    if state is None or state.final or (state.in_service and not _is_pending_cordoned(policy, node_state)):
        return None
    if node_state.decision and "cordon" in state.entry and not node_state.find_effect(node_state.decision, "cordon"):
        return None
    recordons = {lost.decision for lost in node_state.lost_cordons}
    for effect in reversed(node_state.effects):
        if effect.action == "uncordon" or (effect.action == "cordon" and effect in node_state.unsettled_effects):
            return None
        if effect.action in CORDONING_ACTIONS and effect.standing == "verified":
            return effect
        if effect.action == "cordon" and effect.standing == "failed" and effect.decision in recordons:
            return effect
    return None


def _is_pending_cordoned(policy: LifecyclePolicy, node_state: NodeState) -> bool:
    return node_state.pending is not None and "cordon" in policy.actions_while_pending(node_state.pending.rule)


def list_recordon_effects(
    policy: LifecyclePolicy, node_state: NodeState, why: str
) -> list[tuple[str, ActionName, str]]:
    """Return the effects that a reopened node needs: decision, action, and `why` it is out. The cordon comes first.

    assay drains its jobs only if the remaining work needs an empty node.
    """
    last = node_state.lost_cordons[-1] if node_state.lost_cordons else None
    pending = node_state.pending.decision if node_state.pending else ""
    if last is None or last.stay_id != node_state.stay_id or last.pending_decision != pending:
        return []
    drains = () if node_state.pending else _list_drains(policy, node_state)
    return [(last.decision, action, f"{why} (closed again, after it was opened)") for action in ("cordon", *drains)]


def _list_drains(policy: LifecyclePolicy, node_state: NodeState) -> Sequence[ActionName]:
    state = policy.states[node_state.state]
    entry = state.entry if node_state.decision else []
    own = [effect for effect in node_state.effects if effect.decision == node_state.decision]
    done = {effect.action for effect in own if effect.standing == "verified"}
    drains: list[ActionName] = [action for action in entry if action in ("drain", "drain-now")]
    if REPAIR_ACTIONS & (set(entry) - done):
        return drains or ["drain"]
    return drains if state.until_idle else ()
