"""Finds nodes that are judged by nothing new: their outcomes are too old, or there never were any.

A node gets its fault at the second sweep in a row that finds it stale, since the next poll may come after the first.
Many stale nodes of a pool at once are more likely the controller's failure, and none of them gets a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import cache

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_latest_outcomes, read_node_states
from assay.act.schedules.due_slots import ScheduleLine, SlotTask
from assay.act.schedules.slot_runner import SlotResult, read_schedule_history
from assay.decide.faults.detection import FaultObservation
from assay.decide.faults.recovery import make_clearance
from assay.decide.faults.telemetry_silence import make_telemetry_fault
from assay.decide.moves.circuit_breaker import is_wave
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.node_state import NodeState
from assay.ledger.newest.counts import CheckAge
from assay.ledger.newest.interned_texts import split_batches
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog import CheckDeclaration, Phase
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.lists import fold_names, format_count, format_list
from assay.model.timestamps import format_duration, parse_time
from assay.validate.runs.subjects import DeclaredOutcomes

STALE_MARK = "stale"
NODES_PER_QUERY = 200


@frozen
class StaleNode:
    """A node about which nothing new is known, since when, and why in words."""

    node: str
    since: datetime
    reason: str


def sweep_stale_nodes(context: ControllerContext, task: SlotTask) -> SlotResult:
    """Append the faults of the pool's nodes that are stale in two sweeps in a row, and end those that are over."""
    all_states = read_node_states(context.ledger)
    pool = context.fleet.nodes_in_pool(task.line.target)
    states = {node.name: all_states[node.name] for node in pool if node.name in all_states}
    swept = {name: state for name, state in states.items() if list_judged_phases(context.policy, state)}
    stale = {node.node: node for node in _find_stale(context, task.line, swept)}
    if is_wave(context.policy.breaker, len(stale), len(swept)):
        return SlotResult("done", _format_wave(task.line.target, stale, len(swept)))
    ended = read_schedule_history(context.ledger).get(task.line).ended
    last = [ended[slot] for slot in sorted(ended) if ended[slot].ended == "done"][-1:]
    before = [name for sweep in last for name in sweep.facts.get("stale", ())]
    again = [stale[name] for name in before if name in stale and not _find_open_fault(states[name])]
    now, catalog = context.clock.now(), context.fleet.fault_catalog
    faults = [
        make_telemetry_fault(
            catalog, context.fleet.nodes[node.node], "judgement", STALE_MARK, node.since, now, node.reason
        )
        for node in again
    ]
    because = "it is judged by fresh evidence again, or nothing asks for that any more"
    over = {name: fault for name, state in states.items() if name not in stale and (fault := _find_open_fault(state))}
    context.ledger.append(
        *(decision_and_fault_entries.make_fault_entry(fault, now) for fault in faults),
        *(
            decision_and_fault_entries.make_cleared_entry(name, make_clearance(fault, because), now)
            for name, fault in over.items()
        ),
    )
    return SlotResult("done", _format_summary(stale, faults, len(swept)), {"stale": sorted(stale)} if stale else {})


def list_judged_phases(policy: LifecyclePolicy, node_state: NodeState) -> set[Phase]:
    """Return the phases in which a node should be judged; none while an unfinished effect may have it down."""
    state = policy.states.get(node_state.state)
    if state is None or node_state.unsettled_effects:
        return set()
    return {*state.watch, *(requirement.phase for requirement in state.requires)}


def _find_stale(
    context: ControllerContext, line: ScheduleLine, node_states: Mapping[str, NodeState]
) -> Iterator[StaleNode]:
    """Yield the stale nodes. Reads only the dates of all outcomes, and the outcomes of nodes that may be stale."""
    declared, limits, now = DeclaredOutcomes(context.fleet), line.schedule.stale_minutes, context.clock.now()
    phases = {name: frozenset(list_judged_phases(context.policy, state)) for name, state in node_states.items()}
    kinds = {name: (context.fleet.nodes[name].spec, context.fleet.parts_of(name)) for name in node_states}
    examples = {kind: name for name, kind in kinds.items()}

    @cache
    def count_checks(kind: tuple[str, frozenset[str]], phases: frozenset[Phase]) -> list[tuple[CheckDeclaration, int]]:
        """Return the checks, and for how many subjects: the same for all nodes of a kind."""
        expected = _list_expected_checks(declared, examples[kind], phases)
        subjects, checks = Counter(check.id for check, _ in expected), {check.id: check for check, _ in expected}
        return [(checks[ident], count) for ident, count in subjects.items()]

    ages = context.ledger.ages(node_states)
    expected = {name: count_checks(kinds[name], phases[name]) for name in node_states}
    suspects = [name for name in node_states if _may_be_stale(expected[name], ages[name], limits, now)]
    for names in split_batches(suspects, NODES_PER_QUERY):
        latest = read_latest_outcomes(context.ledger, names)
        for name in names:
            checks = _list_expected_checks(declared, name, phases[name])
            if stale := measure_staleness(node_states[name], checks, latest[name], limits, now):
                yield stale


def _may_be_stale(
    expected: Iterable[tuple[CheckDeclaration, int]],
    ages: Mapping[str, CheckAge],
    limits: Mapping[Phase, float],
    now: datetime,
) -> bool:
    """Whether a subject has no outcome or an old one. It may be a subject that the node no longer has."""
    for check, subjects in expected:
        limit, age = _max_age(check, limits), ages.get(check.id)
        if limit and (age is None or age.subjects < subjects or now.timestamp() - age.oldest_s > limit.total_seconds()):
            return True
    return False


def measure_staleness(
    node_state: NodeState,
    expected: Collection[tuple[CheckDeclaration, str]],
    latest: Sequence[RecordedOutcome],
    limits: Mapping[Phase, float],
    now: datetime,
) -> StaleNode | None:
    """Return the oldest outcome that a node should be judged by, if it is too old; `limits` are minutes by phase."""
    newest = {(recorded.outcome.check, recorded.outcome.subject): recorded for recorded in latest}
    oldest: StaleNode | None = None
    for check, subject in expected:
        limit = _max_age(check, limits)
        recorded = newest.get((check.id, subject))
        seen = recorded.seen_at if recorded else ""
        since = max(parse_time(seen), parse_time(node_state.since)) if seen else parse_time(node_state.since)
        if limit and now - since > limit and (oldest is None or since < oldest.since):
            age = f"is {format_duration(now - since)} old, and may be {format_duration(limit)}"
            name = check.id.rpartition("::")[2]
            reason = f"the evidence for {name} on {subject} {age if seen else 'was never there'}"
            oldest = StaleNode(node_state.node, since, reason)
    return oldest


def _max_age(check: CheckDeclaration, limits: Mapping[Phase, float]) -> timedelta | None:
    """Return how old the evidence of a check may be, None where none of its phases is swept."""
    minutes = [limits[phase] for phase in check.phases if phase in limits]
    if not minutes:
        return None
    if check.valid_hours:
        minutes.append(check.valid_hours * 60)
    return timedelta(minutes=min(minutes))


def _list_expected_checks(
    declared: DeclaredOutcomes, name: str, phases: AbstractSet[Phase]
) -> list[tuple[CheckDeclaration, str]]:
    return [
        (check, str(subject))
        for check, subject in declared.of_node(name)
        if not check.is_observe_only and not phases.isdisjoint(check.phases)
    ]


def _format_wave(pool: str, stale: Mapping[str, StaleNode], total: int) -> str:
    since = min(node.since for node in stale.values())
    return (
        f"{len(stale)} of {total} nodes of {pool} are judged by nothing new since {since:%Y-%m-%d %H:%M} UTC: more "
        "likely this controller did not look, so nothing is held against them"
    )


def _format_summary(stale: Mapping[str, StaleNode], faults: Sequence[FaultObservation], total: int) -> str:
    if not stale:
        return f"{format_count(total, 'node')} looked at, none is stale"
    names = format_list(fold_names(stale))
    return f"{len(stale)} of {format_count(total, 'node')} stale ({names}), {len(faults)} reported now"


def _find_open_fault(node_state: NodeState) -> FaultRecord | None:
    return next((fault for fault in node_state.faults if fault.is_open and STALE_MARK in fault.marks), None)
