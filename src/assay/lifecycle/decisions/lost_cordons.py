"""Nodes that should be closed and that their scheduler reads as open: a person, a robot or a restart opened them.

What is open in the middle of a repair is given customers' jobs. So it is closed again, so often in so many hours as the
policy says; whoever opens it as often on purpose is then left to people, until the window has room again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from assay.lifecycle.decisions.proposals import Proposal, grant_proposal
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import EffectRecord, LostCordon, NodeState
from assay.model.decision import REPAIR_ACTIONS, ActionName, Decision, DecisionCause
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_duration, hours, parse_time

CORDONING_ACTIONS: tuple[ActionName, ...] = ("cordon", "drain", "drain-now")
RECORDON_REMEDY = "cordon"
"""The remedy of a decision that closes a node again."""
CORDONS_RULE = "cordons"


def propose_recordon(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield that a node is closed again, or that people have to find out who opens it.

    Nothing of one that a person holds, whose profile lets nobody cordon it, or whose scheduler cannot tell.
    """
    closed = find_cordon_effect(situation.policy, view.node_state)
    if closed is None or view.cordon != "" or view.node_state.hold or "cordon" not in view.profile.actions:
        return
    policy, state = situation.policy.cordons, view.node_state.state
    lately = [
        one for one in view.node_state.lost_cordons if situation.now - parse_time(one.at) < hours(policy.window_hours)
    ]
    seen = f"{closed.action} of {closed.at[:16].replace('T', ' ')} UTC is gone: its scheduler reads it as open for jobs"
    on_it = f", with {', '.join(view.jobs)} on it" if view.jobs else ""
    if len(lately) < policy.again:
        said = f"{seen}{on_it}; closed again ({len(lately) + 1} of {policy.again} in {policy.window_hours:g} h)"
        yield Proposal(
            state,
            "record",
            CORDONS_RULE,
            CORDONS_RULE,
            (DecisionCause("effect", closed.id, said),),
            (closed.id,),
            RECORDON_REMEDY,
        )
    else:
        because = (DecisionCause("opened", closed.id, f"{seen}{on_it}; {_describe_escalation(situation, lately)}"),)
        yield Proposal(state, "record", CORDONS_RULE, CORDONS_RULE, because, (closed.id,), "ticket")


def decide_recordons(situation: FleetSnapshot) -> list[Decision]:
    """Return the decisions that close nodes again; they rest on no other evidence, so they may be made at any time."""
    found = [
        (view, wish)
        for view in situation.nodes
        for wish in propose_recordon(situation, view)
        if wish.remedy == RECORDON_REMEDY
    ]
    made = [(view, grant_proposal(situation, view, wish)) for view, wish in found]
    return [decision for view, decision in made if decision.id not in view.node_state.decision_ids]


def find_cordon_effect(policy: LifecyclePolicy, story: NodeState) -> EffectRecord | None:
    """Return the effect that closed a node which should be closed now; None where none should be, or one is under way.

    A node is to be closed from its cordon until it is given back: in every state that does not serve, and while it
    serves and waits.
    """
    state = policy.states.get(story.state)
    if state is None or state.final or (state.in_service and not _is_pending_cordoned(policy, story)):
        return None
    if story.decision and "cordon" in state.entry and not story.find_effect(story.decision, "cordon"):
        return None
    tries = {one.decision for one in story.lost_cordons}
    for effect in reversed(story.effects):
        if effect.action == "uncordon" or (effect.action == "cordon" and effect in story.unsettled_effects):
            return None
        if effect.action in CORDONING_ACTIONS and (effect.standing == "verified" or _is_failed_recordon(effect, tries)):
            return effect
    return None


def list_recordon_effects(policy: LifecyclePolicy, story: NodeState, why: str) -> list[tuple[str, ActionName, str]]:
    """Return what is owed because a node was opened: decision, action, and `why` it is out. First it is closed.

    Its jobs are ended, or waited for, only where what is left to do there needs an empty node.
    """
    last = story.lost_cordons[-1] if story.lost_cordons else None
    if (
        last is None
        or last.stay_id != story.stay_id
        or last.pending_decision != (story.pending.decision if story.pending else "")
    ):
        return []
    drains = () if story.pending else _list_drains(policy, story)
    return [(last.decision, action, f"{why} (closed again, after it was opened)") for action in ("cordon", *drains)]


def _is_pending_cordoned(policy: LifecyclePolicy, story: NodeState) -> bool:
    return story.pending is not None and "cordon" in policy.actions_while_pending(story.pending.rule)


def _is_failed_recordon(effect: EffectRecord, tries: Collection[str]) -> bool:
    return effect.action == "cordon" and effect.standing == "failed" and effect.decision in tries


def _list_drains(policy: LifecyclePolicy, story: NodeState) -> Sequence[ActionName]:
    state = policy.states[story.state]
    entry = state.entry if story.decision else []
    mine = [effect for effect in story.effects if effect.decision == story.decision]
    done = {effect.action for effect in mine if effect.standing == "verified"}
    drains: list[ActionName] = [action for action in entry if action in ("drain", "drain-now")]
    if REPAIR_ACTIONS & (set(entry) - done):
        return drains or ["drain"]
    return drains if state.until_idle else ()


def _describe_escalation(situation: FleetSnapshot, lately: Sequence[LostCordon]) -> str:
    first = min(parse_time(one.at) for one in lately)
    until = first + hours(situation.policy.cordons.window_hours)
    return (
        f"opened {len(lately)} times in {format_duration(situation.now - first)} and closed again each time, so it is left open "
        f"until {until:%Y-%m-%d %H:%M} UTC: find who opens it (slurmctld's log, the API server's audit log), or "
        "`assay hold` it"
    )
