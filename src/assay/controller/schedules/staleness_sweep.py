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

from assay.controller.cache.ledger_cache import read_latest_outcomes, read_node_states
from assay.controller.context import ControllerContext
from assay.controller.schedules.due_slots import ScheduleLine, SlotTask
from assay.controller.schedules.slot_runner import SlotResult, read_schedule_history
from assay.harness.selection.declared_checks import DeclaredOutcomes
from assay.ledger.interned_texts import split_batches
from assay.ledger.outcome_dates import CheckAge
from assay.lifecycle import ledger_entries
from assay.lifecycle.faults.detection import FaultClearance, FaultObservation
from assay.lifecycle.faults.telemetry_silence import make_telemetry_fault
from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog_and_gates import CheckDeclaration, Phase
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text_lists import fold_names, format_count, format_list
from assay.model.timestamps import format_duration, parse_time

STALE_MARK = "stale"
NODES_PER_QUERY = 200
"""Nodes whose outcomes are in memory at a time."""


@dataclass(frozen=True, slots=True)
class StaleNode:
    """A node that nothing new is known of, since when, and in words."""

    node: str
    since: datetime
    why: str


def sweep_stale_nodes(desk: ControllerContext, task: SlotTask) -> SlotResult:
    """Tell of the pool's nodes that were stale at the last sweep and still are; end what is so no more."""
    every = read_node_states(desk.ledger)
    stories = {node.name: every[node.name] for node in desk.fleet.nodes_in_pool(task.line.target) if node.name in every}
    asked = {name: story for name, story in stories.items() if list_judged_phases(desk.policy, story)}
    found = {one.node: one for one in _find_stale(desk, task.line, asked)}
    if _is_a_wave(desk.policy, len(found), len(asked)):
        return SlotResult("done", _format_wave(task.line.target, found, len(asked)))
    again = [found[name] for name in _list_seen_last_sweep(desk, task.line) if name in found]
    told = [_make_fault(desk, one) for one in again if not _find_open_fault(stories[one.node])]
    now, because = desk.clock.now(), "it is judged by fresh evidence again, or nothing asks for that any more"
    over = {name: known for name, story in stories.items() if name not in found and (known := _find_open_fault(story))}
    desk.ledger.append(
        *(ledger_entries.make_fault_entry(one, now) for one in told),
        *(
            ledger_entries.make_cleared_entry(name, FaultClearance(known.id, because), now)
            for name, known in over.items()
        ),
    )
    return SlotResult("done", _format_summary(found, told, len(asked)), {"stale": sorted(found)} if found else {})


def list_judged_phases(policy: LifecyclePolicy, story: NodeState) -> set[Phase]:
    """Return the phases in which a node is to be judged; none while something that was begun may have it down."""
    state = policy.states.get(story.state)
    if state is None or story.unsettled_effects:
        return set()
    return {*state.watch, *(want.phase for want in state.requires)}


def measure_staleness(
    story: NodeState,
    asked: Collection[tuple[CheckDeclaration, str]],
    latest: Sequence[RecordedOutcome],
    limits: Mapping[Phase, float],
    now: datetime,
) -> StaleNode | None:
    """Return the oldest of what a node should be judged by, where that is older than it may be. `limits` in minutes."""
    newest = {(one.outcome.check, one.outcome.subject): one for one in latest}
    oldest: StaleNode | None = None
    for check, subject in asked:
        most = _max_age(check, limits)
        one = newest.get((check.id, subject))
        seen = one.seen_at if one else ""
        since = max(parse_time(seen), parse_time(story.since)) if seen else parse_time(story.since)
        if most and now - since > most and (oldest is None or since < oldest.since):
            what = (
                f"is {format_duration(now - since)} old, and may be {format_duration(most)}"
                if seen
                else "was never there"
            )
            oldest = StaleNode(
                story.node, since, f"the evidence for {check.id.rpartition('::')[2]} on {subject} {what}"
            )
    return oldest


def _max_age(check: CheckDeclaration, limits: Mapping[Phase, float]) -> timedelta | None:
    """Return how old the evidence of a check may be; None where no phase of it is swept."""
    swept = [limits[phase] for phase in check.phases if phase in limits]
    if not swept:
        return None
    valid = [check.valid_hours * 60] if check.valid_hours else []
    return timedelta(minutes=min([*swept, *valid]))


def _find_stale(desk: ControllerContext, line: ScheduleLine, stories: Mapping[str, NodeState]) -> Iterator[StaleNode]:
    every, limits, now = DeclaredOutcomes(desk.fleet), line.schedule.stale_minutes, desk.clock.now()
    phases = {name: frozenset(list_judged_phases(desk.policy, story)) for name, story in stories.items()}

    @cache
    def counted_of(spec: str, phases: frozenset[Phase]) -> list[tuple[CheckDeclaration, int]]:
        """Return the checks and of how many subjects, which is the same for all nodes of a spec."""
        name = next(name for name in stories if desk.fleet.nodes[name].spec == spec)
        asked = _list_asked_checks(every, name, phases)
        subjects, checks = Counter(check.id for check, _ in asked), {check.id: check for check, _ in asked}
        return [(checks[ident], count) for ident, count in subjects.items()]

    ages = desk.ledger.ages(stories)
    asked = {name: counted_of(desk.fleet.nodes[name].spec, phases[name]) for name in stories}
    suspects = [name for name in stories if _may_be_stale(asked[name], ages[name], limits, now)]
    for names in split_batches(suspects, NODES_PER_QUERY):
        latest = read_latest_outcomes(desk.ledger, names)
        for name in names:
            if stale := measure_staleness(
                stories[name], _list_asked_checks(every, name, phases[name]), latest[name], limits, now
            ):
                yield stale


def _may_be_stale(
    asked: Iterable[tuple[CheckDeclaration, int]],
    ages: Mapping[str, CheckAge],
    limits: Mapping[Phase, float],
    now: datetime,
) -> bool:
    """Whether a subject was never judged, or judged long ago; it may be one that the node no longer has."""
    for check, subjects in asked:
        most, age = _max_age(check, limits), ages.get(check.id)
        if most and (age is None or age.subjects < subjects or now.timestamp() - age.oldest_s > most.total_seconds()):
            return True
    return False


def _list_asked_checks(
    every: DeclaredOutcomes, name: str, phases: AbstractSet[Phase]
) -> list[tuple[CheckDeclaration, str]]:
    asked = every.of_node(name)
    return [
        (check, str(subject))
        for check, subject in asked
        if not check.is_observe_only and not phases.isdisjoint(check.phases)
    ]


def _list_seen_last_sweep(desk: ControllerContext, line: ScheduleLine) -> list[str]:
    """Return the nodes that the last sweep found stale."""
    ended = read_schedule_history(desk.ledger).get(line).ended
    last = [ended[slot] for slot in sorted(ended) if ended[slot].body["ended"] == "done"][-1:]
    return [name for entry in last for name in entry.body.get("stale", ())]


def _is_a_wave(policy: LifecyclePolicy, found: int, of: int) -> bool:
    breaker = policy.breaker
    return found >= breaker.min_nodes and found * 100 >= breaker.percent * of


def _format_wave(pool: str, found: Mapping[str, StaleNode], of: int) -> str:
    since = min(one.since for one in found.values())
    return (
        f"{len(found)} of {of} nodes of {pool} are judged by nothing new since {since:%Y-%m-%d %H:%M} UTC: more likely "
        "this controller did not look, so nothing is held against them"
    )


def _format_summary(found: Mapping[str, StaleNode], told: Sequence[FaultObservation], of: int) -> str:
    if not found:
        return f"{format_count(of, 'node')} looked at, none is stale"
    names = format_list(fold_names(found))
    return f"{len(found)} of {format_count(of, 'node')} stale ({names}), {len(told)} told now"


def _find_open_fault(story: NodeState) -> FaultRecord | None:
    return next((known for known in story.faults if known.is_open and STALE_MARK in known.marks), None)


def _make_fault(desk: ControllerContext, one: StaleNode) -> FaultObservation:
    node = desk.fleet.nodes[one.node]
    return make_telemetry_fault(
        desk.fleet.fault_catalog, node, "judgement", STALE_MARK, one.since, desk.clock.now(), one.why
    )
