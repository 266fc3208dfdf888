"""Where a person wants a node to be, and the next step towards it: along the policy's edges, within its limits."""

from __future__ import annotations

from collections.abc import Iterator

from assay.lifecycle.requirements import arrivals, arrived, judge
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Asked
from assay.lifecycle.verdicts import Wish
from assay.model.decision import Cause, Timing
from assay.model.policy import BY_PERSON, LifecyclePolicy


def step_towards(policy: LifecyclePolicy, origin: str, target: str) -> str:
    """Return the next state on a person's way from `origin` to `target`, "" where the policy draws none.

    Out of service it leads through a state that drains, where `target` itself does not cordon the node on arrival.
    """
    if target not in policy.states:
        return ""
    direct = policy.may_go(origin, target)
    if not policy.states[origin].in_service or "cordon" in policy.states[target].entry:
        return target if direct else ""
    drains = [name for name in policy.edges.get(origin, ()) if policy.states[name].until_idle]
    through = next((name for name in drains if policy.may_go(name, target)), "")
    return through or (target if direct else "")


def asked_for(situation: Situation, view: NodeView) -> Iterator[Wish]:
    """Yield the wish of a person. It waits for the node to be idle, unless the person said that it is not to."""
    asked, story = view.story.asked, view.story
    if asked is None or asked.to == story.state:
        return
    step = step_towards(situation.policy, story.state, asked.to)
    if why := _why_not(situation, view, asked, step):
        yield _cannot(view, asked, why)
    elif not situation.state_of(view).until_idle or _is_drained(situation, view):
        waits = situation.state_of(view).in_service and not asked.now
        because = (_cause(asked),)
        timing: Timing = "pending" if waits else "immediate"
        yield Wish(step, timing, f"edges.{story.state}", BY_PERSON, because, (asked.id,))


def _why_not(situation: Situation, view: NodeView, asked: Asked, step: str) -> str:
    """Return what forbids the next step, "" for nothing."""
    if asked.to not in situation.policy.states:
        return f"the policy has no state {asked.to}"
    if not step:
        return f"the policy draws no way from {view.story.state} to {asked.to}"
    return _unproved(situation, view) if situation.policy.states[step].in_service else ""


def _cause(asked: Asked) -> Cause:
    return Cause("person", asked.id, f"{asked.who} asked for {asked.to}: {asked.reason}")


def _cannot(view: NodeView, asked: Asked, why: str) -> Wish:
    """Return the record that a person's move does not happen now, and why: once in a stay for each reason."""
    because = (Cause("policy", why, why), _cause(asked))
    return Wish(view.story.state, "record", f"edges.{view.story.state}", BY_PERSON, because, (asked.id, why), "wait")


def _unproved(situation: Situation, view: NodeView) -> str:
    """Return what is not proved yet of a node that is to serve. A person may cut its soaking short, not the proof."""
    judgements = judge(situation, view)
    if not judgements or not arrived(situation, view):
        return f"nobody serves straight out of {view.story.state}: nothing is proved there"
    unmet = [judgement.requirement.phase for judgement in judgements if not judgement.met]
    return f"phase {' and '.join(unmet)} is not passed" if unmet else ""


def _is_drained(situation: Situation, view: NodeView) -> bool:
    """Whether nothing is left on the node, as far as draining it has come to an end."""
    standings = [standing for _, standing in arrivals(situation, view)]
    return view.jobs == () and all(standing in ("verified", "failed") for standing in standings)
