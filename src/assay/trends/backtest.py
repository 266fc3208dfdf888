"""The backtest: what the changed thresholds and policy would have done with the last days, and the present ones not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.lifecycle.fold import fold
from assay.lifecycle.story import Known, Story
from assay.lifecycle.when import moment
from assay.model.backtest import Backtest, Hindsight
from assay.model.entry import Entry
from assay.model.outcome import Recorded
from assay.trends.reaction import Reaction, Side
from assay.trends.rejudge import Bounds, Rejudging, Seen
from assay.trends.states import States

DAYS = 30.0


@dataclass(frozen=True, slots=True)
class _Differs:
    """One sighting to which the revisions react differently, of the node as it was or (`still`) as it is."""

    node: str
    at: str
    because: str
    before: Reaction
    after: Reaction
    still: bool


def backtest(
    before: Side, after: Side, bounds: Bounds, entries: Sequence[Entry], outcomes: Iterable[Recorded], now: datetime
) -> Backtest:
    """Return on whom the two revisions differ. `entries` are the whole ledger; `outcomes` those of the last `DAYS`."""
    start = now - timedelta(days=DAYS)
    recent, states, stories = list(outcomes), States(entries), fold(entries)
    judging = Rejudging(before, after, bounds, states)
    differing = list(_by_measurement(judging.seen(recent)))
    faults = [
        (story, known) for story in stories.values() for known in story.faults if moment(known.last_seen) >= start
    ]
    differing += _by_fault(before, after, states, faults)
    return Backtest(
        days=_days(start, now, [entry.at for entry in entries[:1]] + [one.at for one in recent[:1]]),
        measurements=judging.read,
        faults=len(faults),
        unmapped=judging.unmapped,
        found=tuple(_together(differing)),
    )


def changes_anything(before: Side, after: Side) -> tuple[bool, bool]:
    """Return whether any limit, and whether policy or catalogue, differ: only then history has something to say."""
    names = before.fleet.node_specs.keys() | after.fleet.node_specs.keys()
    specs = [(before.fleet.node_specs.get(name), after.fleet.node_specs.get(name)) for name in names]
    limits = any(old is None or new is None or old.limits != new.limits for old, new in specs)
    return limits, before.policy != after.policy or before.catalog != after.catalog


def _by_measurement(seen: Iterable[Seen]) -> Iterator[_Differs]:
    """Yield the measurements to which the revisions react differently; of each thing the newest is `still` so."""
    newest: dict[tuple[str, str, str], Seen] = {}
    for one in seen:
        if one.key not in newest or moment(one.at) >= moment(newest[one.key].at):
            newest[one.key] = one
        if one.before != one.after:
            yield _Differs(one.node, one.at, one.because, one.before, one.after, still=False)
    for one in newest.values():
        if one.before_now != one.after_now:
            yield _Differs(one.node, one.at, one.because, one.before_now, one.after_now, still=True)


def _by_fault(before: Side, after: Side, states: States, faults: Iterable[tuple[Story, Known]]) -> Iterator[_Differs]:
    for story, known in faults:
        then = states.at(story.node, known.last_seen)
        for state, still in ((then, False), *([(story.state, True)] if _is_open(story, known) else [])):
            said = [_to_fault(side, story.node, state, known, before) for side in (before, after)]
            if said[0] != said[1]:
                because = f"{known.fault_class} on {known.subject}"
                yield _Differs(story.node, known.last_seen, because, said[0], said[1], still)


def _is_open(story: Story, known: Known) -> bool:
    """Whether a decision would look at the fault now: nothing has cleared, answered or repaired it."""
    return known.open and known.answer == "" and known.last_seen > story.repaired_at


def _to_fault(side: Side, node: str, state: str, known: Known, before: Side) -> Reaction:
    """Return a revision's reaction; a fault that had not reached its count has not reached it now."""
    counted = known.severity == before.catalog.treatment(known.fault_class).severity
    severity = side.catalog.treatment(known.fault_class).severity if counted else known.severity
    return side.to_fault(node, state, known.fault_class, severity)


def _together(differing: Iterable[_Differs]) -> Iterator[Hindsight]:
    """Yield one line for each node and reason where exactly one of the revisions moves the node."""
    groups: dict[tuple[str, bool, str, str], list[_Differs]] = defaultdict(list)
    for one in differing:
        if one.before.moves != one.after.moves:
            groups[one.node, one.after.moves, one.before.text, one.after.text].append(one)
    for (node, acts, then, now), some in sorted(groups.items()):
        last = max(some, key=lambda one: moment(one.at))
        times = sum(not one.still for one in some)
        still = any(one.still for one in some)
        yield Hindsight(node, acts, still, last.because, then, now, last.at, max(times, 1))


def _days(start: datetime, now: datetime, first: list[str]) -> float:
    """Return how many days of history there were."""
    begun = min((moment(at) for at in first), default=now)
    return max(0.0, (now - max(start, begun)) / timedelta(days=1))
