"""What decides nothing about a node although it failed: a known issue excuses it, or its check only observes as yet.

Applied at every decision anew, to what is kept: on the day on which an entry expires, what it excused counts at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Known
from assay.lifecycle.verdicts import Wish
from assay.model.decision import Cause
from assay.model.fleet import Node
from assay.model.known import Judged, KnownIssue, excuse
from assay.model.outcome import Outcome, Recorded


def excuse_of(known: Iterable[KnownIssue], node: Node, outcome: Outcome, now: datetime) -> KnownIssue | None:
    """Return what excuses an outcome at `now`. Only failures are: what could not be judged is not known."""
    if outcome.verdict != "fail":
        return None
    return excuse(known, Judged.of(outcome.check, outcome.subject, node), now)


def counting(
    latest: Iterable[Recorded], node: Node, known: Collection[KnownIssue], observed: Collection[str], now: datetime
) -> list[Recorded]:
    """Return the outcomes that may say something for or against a node at `now`."""
    return [one for one in latest if one.outcome.check not in observed and not excuse_of(known, node, one.outcome, now)]


def proving(latest: Collection[Recorded], observed: Collection[str]) -> list[Recorded]:
    """Return the outcomes that may end a fault: those of a check that observes only where no other tells of the same.

    Passes are never held against a known issue. One whose evidence a wrong clock dated proves nothing.
    """
    latest = [one for one in latest if not (one.outcome.verdict == "pass" and one.dated_ahead)]
    told = {_about(one.outcome) for one in latest if one.outcome.check not in observed}
    return [one for one in latest if one.outcome.check not in observed or _about(one.outcome) not in told]


def as_it_counts(situation: Situation) -> Situation:
    """Return the situation without the open faults that only checks told of which decide nothing now."""
    if not situation.known and not situation.observed:
        return situation
    return replace(situation, nodes=tuple(_as_it_counts(situation, view) for view in situation.nodes))


def noted(situation: Situation, view: NodeView) -> Iterator[Wish]:
    """Yield one record for each known issue that excuses a failure which the node's state asks about.

    It is made once in a stay, so that history says why the node was left where it is, or let through.
    """
    state, found = situation.state_of(view), dict[KnownIssue, list[Recorded]]()
    asked = {*state.watch, *(want.phase for want in state.requires)}
    failed = [one for one in view.latest if one.outcome.verdict == "fail"] if situation.known else []
    for one in sorted(failed, key=lambda one: one.id):
        issue = excuse_of(situation.known, view.node, one.outcome, situation.now)
        if issue and asked & set(one.outcome.phases) and one.outcome.check not in situation.observed:
            found.setdefault(issue, []).append(one)
    for issue, outcomes in sorted(found.items(), key=lambda item: item[0].order):
        said = Cause("known", issue.issue, f"{issue.said}: {issue.reason} (followed by {issue.owner})")
        because = (said, *(failure(one) for one in outcomes))
        keys = (issue.issue, issue.expires)
        yield Wish(view.story.state, "record", "known", "known-issue", because, keys, "none")


def failure(one: Recorded) -> Cause:
    """Return a failed check as a link of the chain."""
    test = one.outcome.check.rpartition("::")[2]
    return Cause("outcome", one.id, f"{test} failed on {one.outcome.subject}: {one.outcome.reason}")


def _as_it_counts(situation: Situation, view: NodeView) -> NodeView:
    counted = tuple(known for known in view.story.faults if not _is_aside(situation, view, known))
    if len(counted) == len(view.story.faults):
        return view
    return replace(view, story=replace(view.story, faults=counted))


def _is_aside(situation: Situation, view: NodeView, known: Known) -> bool:
    """Whether only checks told of an open fault, which all observe now, or of which each that fails is excused.

    A check that cannot be judged any more excuses nothing: the fault stays.
    """
    if not known.open or set(known.marks) != {"check"}:
        return False
    about = (known.fault_class, known.subject)
    tellers = {check.id for check, subject in view.declared if (check.fault, str(subject)) == about}
    if tellers and tellers <= situation.observed:
        return True
    telling = [one for one in view.latest if one.outcome.verdict == "fail" and _about(one.outcome) == about]
    counted = counting(telling, view.node, situation.known, situation.observed, situation.now)
    return bool(telling) and not counted


def _about(outcome: Outcome) -> tuple[str, str]:
    return (outcome.fault, outcome.subject)
