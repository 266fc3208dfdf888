"""Finds nodes that are judged by nothing new: their outcomes are older than they may be, or there never were any.

A node is told at the second sweep in a row that finds it so, since the first may come before the look that mends it.
Many of a pool at once are more likely a controller that did not look than the nodes, and none of them is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from assay.controller.clock.schedule import Ended, past_of
from assay.controller.clock.timetable import Line, Task
from assay.controller.desk import Desk
from assay.controller.known.newest import outcomes_of
from assay.controller.known.stories import stories_of
from assay.harness.declared import Declared
from assay.ledger.ages import Age
from assay.ledger.texts import batches
from assay.lifecycle import journal
from assay.lifecycle.classify import Cleared, FaultSeen
from assay.lifecycle.silent import lost
from assay.lifecycle.story import Known, Story
from assay.lifecycle.when import moment, spoken
from assay.model.checks import Check, Phase
from assay.model.outcome import Recorded
from assay.model.policy import LifecyclePolicy
from assay.model.spans import counted, folded, listed

MARK = "stale"
TOGETHER = 200
"""Nodes whose outcomes are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A node that nothing new is known of, since when, and in words."""

    node: str
    since: datetime
    why: str


def look_for_stale(desk: Desk, task: Task) -> Ended:
    """Tell of the pool's nodes that were stale at the last sweep and still are; end what is so no more."""
    every = stories_of(desk.ledger)
    stories = {node.name: every[node.name] for node in desk.fleet.pool(task.line.part) if node.name in every}
    asked = {name: story for name, story in stories.items() if phases_of(desk.policy, story)}
    found = {one.node: one for one in _stale_of(desk, task.line, asked)}
    if _is_a_wave(desk.policy, len(found), len(asked)):
        return Ended("done", _wave(task.line.part, found, len(asked)))
    again = [found[name] for name in _noticed(desk, task.line) if name in found]
    told = [_fault(desk, one) for one in again if not _known(stories[one.node])]
    now, because = desk.clock.now(), "it is judged by fresh evidence again, or nothing asks for that any more"
    over = {name: known for name, story in stories.items() if name not in found and (known := _known(story))}
    desk.ledger.append(
        *(journal.fault(one, now) for one in told),
        *(journal.cleared(name, Cleared(known.id, because), now) for name, known in over.items()),
    )
    return Ended("done", _said(found, told, len(asked)), {"stale": sorted(found)} if found else {})


def phases_of(policy: LifecyclePolicy, story: Story) -> set[Phase]:
    """Return the phases in which a node is to be judged; none while something that was begun may have it down."""
    state = policy.states.get(story.state)
    if state is None or story.in_flight:
        return set()
    return {*state.watch, *(want.phase for want in state.requires)}


def staleness(
    story: Story,
    asked: Collection[tuple[Check, str]],
    latest: Sequence[Recorded],
    limits: Mapping[Phase, float],
    now: datetime,
) -> Stale | None:
    """Return the oldest of what a node should be judged by, where that is older than it may be. `limits` in minutes."""
    newest = {(one.outcome.check, one.outcome.subject): one for one in latest}
    oldest: Stale | None = None
    for check, subject in asked:
        most = _most(check, limits)
        one = newest.get((check.id, subject))
        seen = one.seen_at if one else ""
        since = max(moment(seen), moment(story.since)) if seen else moment(story.since)
        if most and now - since > most and (oldest is None or since < oldest.since):
            what = f"is {spoken(now - since)} old, and may be {spoken(most)}" if seen else "was never there"
            oldest = Stale(story.node, since, f"the evidence for {check.id.rpartition('::')[2]} on {subject} {what}")
    return oldest


def _most(check: Check, limits: Mapping[Phase, float]) -> timedelta | None:
    """Return how old the evidence of a check may be; None where no phase of it is swept."""
    swept = [limits[phase] for phase in check.phases if phase in limits]
    if not swept:
        return None
    valid = [check.valid_hours * 60] if check.valid_hours else []
    return timedelta(minutes=min([*swept, *valid]))


def _stale_of(desk: Desk, line: Line, stories: Mapping[str, Story]) -> Iterator[Stale]:
    every, limits, now = Declared(desk.fleet), line.schedule.stale_minutes, desk.clock.now()
    phases = {name: frozenset(phases_of(desk.policy, story)) for name, story in stories.items()}

    @cache
    def counted_of(spec: str, phases: frozenset[Phase]) -> list[tuple[Check, int]]:
        """Return the checks and of how many subjects, which is the same for all nodes of a spec."""
        name = next(name for name in stories if desk.fleet.nodes[name].spec == spec)
        asked = _asked(every, name, phases)
        subjects, checks = Counter(check.id for check, _ in asked), {check.id: check for check, _ in asked}
        return [(checks[ident], count) for ident, count in subjects.items()]

    ages = desk.ledger.ages(stories)
    asked = {name: counted_of(desk.fleet.nodes[name].spec, phases[name]) for name in stories}
    suspects = [name for name in stories if _may_be_stale(asked[name], ages[name], limits, now)]
    for names in batches(suspects, TOGETHER):
        latest = outcomes_of(desk.ledger, names)
        for name in names:
            if stale := staleness(stories[name], _asked(every, name, phases[name]), latest[name], limits, now):
                yield stale


def _may_be_stale(
    asked: Iterable[tuple[Check, int]], ages: Mapping[str, Age], limits: Mapping[Phase, float], now: datetime
) -> bool:
    """Whether a subject was never judged, or judged long ago; it may be one that the node no longer has."""
    for check, subjects in asked:
        most, age = _most(check, limits), ages.get(check.id)
        if most and (age is None or age.subjects < subjects or now.timestamp() - age.oldest_s > most.total_seconds()):
            return True
    return False


def _asked(every: Declared, name: str, phases: AbstractSet[Phase]) -> list[tuple[Check, str]]:
    asked = every.of(name)
    return [
        (check, str(subject)) for check, subject in asked if not check.observed and not phases.isdisjoint(check.phases)
    ]


def _noticed(desk: Desk, line: Line) -> list[str]:
    """Return the nodes that the last sweep found stale."""
    ended = past_of(desk.ledger).of(line).ended
    last = [ended[slot] for slot in sorted(ended) if ended[slot].body["ended"] == "done"][-1:]
    return [name for entry in last for name in entry.body.get("stale", ())]


def _is_a_wave(policy: LifecyclePolicy, found: int, of: int) -> bool:
    breaker = policy.breaker
    return found >= breaker.min_nodes and found * 100 >= breaker.percent * of


def _wave(pool: str, found: Mapping[str, Stale], of: int) -> str:
    since = min(one.since for one in found.values())
    return (
        f"{len(found)} of {of} nodes of {pool} are judged by nothing new since {since:%Y-%m-%d %H:%M} UTC: more likely "
        "this controller did not look, so nothing is held against them"
    )


def _said(found: Mapping[str, Stale], told: Sequence[FaultSeen], of: int) -> str:
    if not found:
        return f"{counted(of, 'node')} looked at, none is stale"
    names = listed(folded(found))
    return f"{len(found)} of {counted(of, 'node')} stale ({names}), {len(told)} told now"


def _known(story: Story) -> Known | None:
    return next((known for known in story.faults if known.open and MARK in known.marks), None)


def _fault(desk: Desk, one: Stale) -> FaultSeen:
    node = desk.fleet.nodes[one.node]
    return lost(desk.fleet.catalog, node, "judgement", MARK, one.since, desk.clock.now(), one.why)
