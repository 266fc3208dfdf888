"""What waits: taken back once nothing is left of its cause, and brought to mind with what it waits for and its age."""

from __future__ import annotations

from collections.abc import Iterator

from assay.lifecycle.racks import Short
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Pending, Story
from assay.lifecycle.verdicts import Wish
from assay.lifecycle.when import hours, moment, spoken
from assay.model.decision import Cause
from assay.model.policy import BY_PERSON, OF_RACK, LifecyclePolicy

STILL_WAITING = "still-waiting"
NO_ANSWER = ("unknown: the scheduler does not answer",)


def waiting(situation: Situation, view: NodeView, short: Short | None) -> Iterator[Wish]:
    """Yield the withdrawal of what waits for nothing any more, else the reminder of what waits for long."""
    pending = view.story.pending
    if pending is None:
        yield from _still_asked(situation, view)
    elif gone := gone_cause(situation.policy, view.story, short):
        if view.story.held is None:
            because = (Cause("decision", pending.decision, gone), *pending.because)
            keys = (pending.decision,)
            yield Wish(
                view.story.state, "record", path_of(pending), rule_name(pending), because, keys, remedy="withdraw"
            )
    else:
        yield from _still_waiting(situation, view, pending)


def gone_cause(policy: LifecyclePolicy, story: Story, short: Short | None) -> str:
    """Return why what waits has lost its cause, "" while something of it is left."""
    pending = story.pending
    name = rule_name(pending) if pending else ""
    if pending is None:
        return ""
    if name.startswith(OF_RACK):
        return "" if short else "enough nodes of the rack serve again"
    if not policy.may_go(story.state, pending.to):
        return f"the policy no longer leads from {story.state} to {pending.to}"
    if name == BY_PERSON:
        asked = story.asked
        return "" if asked and asked.id in {cause.id for cause in pending.because} else "nobody asks for it any more"
    told = {cause.id for cause in pending.because if cause.kind == "fault"}
    left = [known for known in story.faults if known.id in told and known.open and known.last_seen > story.repaired_at]
    return "" if left or not told else "what it waited to answer is over"


def rule_name(pending: Pending) -> str:
    """Return the name of the rule that waits."""
    return pending.rule.rpartition(" ")[2]


def path_of(pending: Pending) -> str:
    """Return where in the policy its rule stands."""
    name = rule_name(pending)
    if name == BY_PERSON:
        return "waiting"
    return name if name.startswith(OF_RACK) else f"faults.{name}"


def _still_waiting(situation: Situation, view: NodeView, pending: Pending) -> Iterator[Wish]:
    waited = situation.now - moment(pending.since)
    times = int(waited / hours(situation.policy.waiting.remind_hours))
    if times < 1:
        return
    for_what = pending.blockers if rule_name(pending).startswith(OF_RACK) else view.jobs
    blockers = NO_ANSWER if for_what is None else for_what
    said = f"has waited {spoken(waited)} to go to {pending.to}, for {', '.join(blockers) or 'nothing any more'}"
    because = (Cause("decision", pending.decision, said), *pending.because)
    yield _reminder(view, because, pending.decision, times, blockers)


def _still_asked(situation: Situation, view: NodeView) -> Iterator[Wish]:
    asked = view.story.asked
    waited = situation.now - moment(asked.at) if asked else None
    times = int(waited / hours(situation.policy.waiting.remind_hours)) if waited else 0
    if asked and waited and times >= 1:
        said = f"{asked.who} asked for {asked.to} {spoken(waited)} ago, and it is still in {view.story.state}"
        yield _reminder(view, (Cause("person", asked.id, f"{said}: {asked.reason}"),), asked.id, times)


def _reminder(
    view: NodeView, because: tuple[Cause, ...], about: str, times: int, blockers: tuple[str, ...] = ()
) -> Wish:
    keys = (about, str(times))
    return Wish(view.story.state, "record", "waiting", STILL_WAITING, because, keys, "none", blockers=blockers)
