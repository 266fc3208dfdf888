"""What should happen to a node for every reason but a fault: the ways out that its state names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assay.lifecycle.breaker import is_late
from assay.lifecycle.excused import failure
from assay.lifecycle.faulted import cause
from assay.lifecycle.ladder import recurred
from assay.lifecycle.requirements import Judgement, arrivals, arrived, judge
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.verdicts import Wish
from assay.lifecycle.waiting import path_of, rule_name
from assay.lifecycle.when import hours, moment, spoken
from assay.model.decision import Cause

Way = Callable[[Situation, NodeView], Wish | None]


def ways(situation: Situation, view: NodeView) -> Iterator[Wish]:
    """Yield what the node's state wishes, the weightiest first."""
    for way in (_effect_failed, _certified, _idle_at_last, _escalate, _fails, _passes, _deadline):
        if wish := way(situation, view):
            yield wish


def _effect_failed(situation: Situation, view: NodeView) -> Wish | None:
    story, state = view.story, situation.state_of(view)
    failed = [action for action, standing in arrivals(situation, view) if standing == "failed"]
    effect = story.effect_of(story.decision, failed[0]) if failed else None
    if effect is None:
        return None
    because = (Cause("effect", effect.id, f"{effect.action} failed: {effect.reason}"),)
    path = f"states.{story.state}.effect_failed_to" if state.effect_failed_to else f"states.{story.state}"
    name = f"{story.state}-effect-failed"
    if state.effect_failed_to:
        return Wish(state.effect_failed_to, "immediate", path, name, because, (effect.id,))
    return Wish(story.state, "record", path, name, because, (effect.id,), "ticket")


def _certified(situation: Situation, view: NodeView) -> Wish | None:
    word, to = view.story.certified, situation.state_of(view).certified_to
    if word is None or to is None:
        return None
    because = (Cause("certified", word.id, f"certified by {word.who}: {word.reason}"),)
    state = view.story.state
    return Wish(to, "immediate", f"states.{state}.certified_to", f"{state}-certified", because, (word.id,))


def _idle_at_last(situation: Situation, view: NodeView) -> Wish | None:
    """Grant what waited for the node to be idle. A scheduler that cannot tell is no sign of idleness."""
    pending = view.story.pending
    if pending is None or view.jobs != () or not situation.policy.may_go(view.story.state, pending.to):
        return None
    name = rule_name(pending)
    waited = spoken(situation.now - moment(pending.since))
    because = (Cause("decision", pending.decision, f"idle after {waited} of waiting"), *pending.because)
    by_fault = name in situation.policy.faults
    return Wish(
        pending.to,
        "immediate",
        path_of(pending),
        name,
        because,
        (pending.decision,),
        pending.remedy,
        takes_out=by_fault,
    )


def _escalate(situation: Situation, view: NodeView) -> Wish | None:
    story, ladder = view.story, situation.policy.ladder
    for number, step in enumerate(situation.state_of(view).escalate):
        blamed = [known for known in story.faults if known.open and known.blame == step.blame]
        guilty = [known for known in blamed if not step.recurred or recurred(ladder, story, known, situation.now)]
        if guilty:
            because = tuple(cause(known) for known in guilty)
            keys = tuple(known.id for known in guilty)
            path, name = f"states.{story.state}.escalate.{number}", f"{story.state}-escalates"
            remedy = "rma" if "dossier" in situation.policy.states[step.to].entry else ""
            return Wish(step.to, "immediate", path, name, because, keys, remedy)
    return None


def _fails(situation: Situation, view: NodeView) -> Wish | None:
    state = situation.state_of(view)
    failed = {one.id: one for judgement in judge(situation, view) for one in judgement.failed}
    if not failed:
        return None
    because = tuple(failure(one) for _, one in sorted(failed.items()))
    keys = tuple(f"{one.outcome.check}[{one.outcome.subject}]" for one in failed.values())
    name = f"{view.story.state}-fails"
    if state.fail_to:
        return Wish(state.fail_to, "immediate", f"states.{view.story.state}.fail_to", name, because, keys)
    return Wish(view.story.state, "record", f"states.{view.story.state}.requires", name, because, keys, "ticket")


def _passes(situation: Situation, view: NodeView) -> Wish | None:
    state, story = situation.state_of(view), view.story
    judgements = judge(situation, view)
    stayed = situation.now - moment(story.since)
    ready = arrived(situation, view) and all(judgement.met for judgement in judgements)
    if state.pass_to is None or not ready or stayed < hours(state.soak_hours):
        return None
    if state.until_idle and view.jobs != ():
        return None
    because = tuple(_phase_passed(judgement) for judgement in judgements) or (_arrival(situation, view),)
    return Wish(state.pass_to, "immediate", f"states.{story.state}.pass_to", f"{story.state}-passes", because)


def _deadline(situation: Situation, view: NodeView) -> Wish | None:
    deadline, story = situation.state_of(view).deadline, view.story
    if deadline is None or not is_late(situation, view):
        return None
    path, name = f"states.{story.state}.deadline", f"{story.state}-deadline"
    because = (Cause("deadline", story.stay, f"{story.state} took longer than {deadline.hours:g} h"),)
    if deadline.to is None:
        return Wish(story.state, "record", path, name, because, (story.stay,), "ticket")
    return Wish(deadline.to, "immediate", path, name, because, (story.spared,) if story.spared else (), late=True)


def _phase_passed(judgement: Judgement) -> Cause:
    """Return one link for a whole phase; it names the run of its oldest outcome, the one that freshness hangs on."""
    counted = (*judgement.passed, *(one for one, _ in judgement.excused))
    oldest = min(counted, key=lambda one: (one.outcome.evidence_at, one.id))
    phase = judgement.requirement.phase
    count, seen = len(judgement.passed), oldest.outcome.evidence_at[:19]
    issues = sorted({issue.said for _, issue in judgement.excused})
    but = f", {len(judgement.excused)} failed ({'; '.join(issues)})" if issues else ""
    text = f"{count} of {len(counted)} checks of phase {phase} passed{but}, on evidence since {seen}"
    return Cause("outcome", f"{oldest.run}/{phase}", text)


def _arrival(situation: Situation, view: NodeView) -> Cause:
    story = view.story
    for action, _ in reversed(arrivals(situation, view)):
        if effect := story.effect_of(story.decision, action):
            return Cause("effect", effect.id, f"{action} verified: {effect.reason}")
    return Cause("decision", story.decision, f"nothing is left to do in {story.state}")
