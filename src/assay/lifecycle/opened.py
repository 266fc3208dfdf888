"""Nodes that should be closed and that their scheduler reads as open: a person, a robot or a restart opened them.

What is open in the middle of a repair is given customers' jobs. So it is closed again, so often in so many hours as the
policy says; whoever opens it as often on purpose is then left to people, until the window has room again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Effect, Opened, Story
from assay.lifecycle.verdicts import Wish, decided
from assay.lifecycle.when import hours, moment, spoken
from assay.model.action import REPAIRS, Action
from assay.model.decision import Cause, Decision
from assay.model.policy import LifecyclePolicy

CLOSING: tuple[Action, ...] = ("cordon", "drain", "drain-now")
AGAIN = "cordon"
"""The remedy of a decision that closes a node again."""
RULE = "cordons"


def opened(situation: Situation, view: NodeView) -> Iterator[Wish]:
    """Yield that a node is closed again, or that people have to find out who opens it.

    Nothing of one that a person holds, whose profile lets nobody cordon it, or whose scheduler cannot tell.
    """
    closed = closed_by(situation.policy, view.story)
    if closed is None or view.cordon != "" or view.story.held or "cordon" not in view.profile.actions:
        return
    policy, state = situation.policy.cordons, view.story.state
    lately = [one for one in view.story.opened if situation.now - moment(one.at) < hours(policy.window_hours)]
    seen = f"{closed.action} of {closed.at[:16].replace('T', ' ')} UTC is gone: its scheduler reads it as open for jobs"
    on_it = f", with {', '.join(view.jobs)} on it" if view.jobs else ""
    if len(lately) < policy.again:
        said = f"{seen}{on_it}; closed again ({len(lately) + 1} of {policy.again} in {policy.window_hours:g} h)"
        yield Wish(state, "record", RULE, RULE, (Cause("effect", closed.id, said),), (closed.id,), AGAIN)
    else:
        because = (Cause("opened", closed.id, f"{seen}{on_it}; {_left_to_people(situation, lately)}"),)
        yield Wish(state, "record", RULE, RULE, because, (closed.id,), "ticket")


def close_again(situation: Situation) -> list[Decision]:
    """Return the decisions that close nodes again; they rest on no other evidence, so they may be made at any time."""
    found = [(view, wish) for view in situation.nodes for wish in opened(situation, view) if wish.remedy == AGAIN]
    made = [(view, decided(situation, view, wish)) for view, wish in found]
    return [decision for view, decision in made if decision.id not in view.story.decided]


def closed_by(policy: LifecyclePolicy, story: Story) -> Effect | None:
    """Return the effect that closed a node which should be closed now; None where none should be, or one is under way.

    A node is to be closed from its cordon until it is given back: in every state that does not serve, and while it
    serves and waits.
    """
    state = policy.states.get(story.state)
    if state is None or state.final or (state.in_service and not _waits_closed(policy, story)):
        return None
    if story.decision and "cordon" in state.entry and not story.effect_of(story.decision, "cordon"):
        return None
    tries = {one.decision for one in story.opened}
    for effect in reversed(story.effects):
        if effect.action == "uncordon" or (effect.action == "cordon" and effect in story.in_flight):
            return None
        if effect.action in CLOSING and (effect.standing == "verified" or _failed_again(effect, tries)):
            return effect
    return None


def closed_again(policy: LifecyclePolicy, story: Story, why: str) -> list[tuple[str, Action, str]]:
    """Return what is owed because a node was opened: decision, action, and `why` it is out. First it is closed.

    Its jobs are ended, or waited for, only where what is left to do there needs an empty node.
    """
    last = story.opened[-1] if story.opened else None
    if last is None or last.stay != story.stay or last.waits != (story.pending.decision if story.pending else ""):
        return []
    drains = () if story.pending else _drains(policy, story)
    return [(last.decision, action, f"{why} (closed again, after it was opened)") for action in ("cordon", *drains)]


def _waits_closed(policy: LifecyclePolicy, story: Story) -> bool:
    return story.pending is not None and "cordon" in policy.meanwhile(story.pending.rule)


def _failed_again(effect: Effect, tries: Collection[str]) -> bool:
    return effect.action == "cordon" and effect.standing == "failed" and effect.decision in tries


def _drains(policy: LifecyclePolicy, story: Story) -> Sequence[Action]:
    state = policy.states[story.state]
    entry = state.entry if story.decision else []
    mine = [effect for effect in story.effects if effect.decision == story.decision]
    done = {effect.action for effect in mine if effect.standing == "verified"}
    drains: list[Action] = [action for action in entry if action in ("drain", "drain-now")]
    if REPAIRS & (set(entry) - done):
        return drains or ["drain"]
    return drains if state.until_idle else ()


def _left_to_people(situation: Situation, lately: Sequence[Opened]) -> str:
    first = min(moment(one.at) for one in lately)
    until = first + hours(situation.policy.cordons.window_hours)
    return (
        f"opened {len(lately)} times in {spoken(situation.now - first)} and closed again each time, so it is left open "
        f"until {until:%Y-%m-%d %H:%M} UTC: find who opens it (slurmctld's log, the API server's audit log), or "
        "`assay hold` it"
    )
