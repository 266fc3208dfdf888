"""Verifies idle nodes in production: loads them in their spare time, judges the results, and records faults.

A node that is in use, or yields to a customer's job, waits for the next slot: that is neither pass nor fail. Of a visit
that was cut short only failures are recorded: a wrong result is evidence, whenever the end came. A node that is
cordoned for a verification, or by assay although it is in service, is loaded too, and is given back after it passed.
Loads stay with the slot until its end, so a slot that is run again continues from there. How long ago each GPU was
covered is judged after each slot, and once a day for a node that no visit reaches.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from assay.act.ingest.collection import identify_machine
from assay.act.ingest.fault_recording import record_outcome_faults
from assay.act.ingest.suite_runs import judge_phase, write_run_history
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_latest_outcomes, read_node_states
from assay.act.schedules.due_slots import ScheduleLine, SlotTask
from assay.act.schedules.idle_visits import (
    OUTCOME_WORDS,
    IdleNodeResult,
    NodeVisit,
    find_exclusion,
    find_gpu_slots,
    is_in_service,
    list_checks_to_leave_out,
    list_parts,
    load_idle_node,
    make_visit_entry,
    order_idle_nodes,
    plan_visits,
)
from assay.act.schedules.slot_runner import SlotResult
from assay.adapters.scheduler import VERIFY_UNDRAIN, SchedulerNodeStatus, group_by_scheduler, undrain_if_supported
from assay.decide.state.load_coverage import COVERAGE, GpuCoverage, describe_coverage
from assay.decide.state.node_state import NodeState
from assay.ledger.ledger_reader import read_projection
from assay.model.cordon_ownership import is_our_reason
from assay.model.entries.schedule_entries import NodeUndrainedEntry, VerificationMissedEntry
from assay.model.errors import AssayError, describe_error
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.reading import ReadingTree
from assay.model.specs.check_catalog import Phase
from assay.model.specs.load_parts import LoadPart, select_possible
from assay.model.specs.schedules import SMALLEST_STEP, IdleVerificationSpec, find_previous_slot
from assay.model.text.lists import fold_names, format_count, format_list
from assay.model.timestamps import format_time, parse_time
from assay.observe.evidence_collector import NodeQuery, run_queries
from assay.observe.evidence_store import EvidenceStore
from assay.validate.runs.run_validation import run_validation
from assay.validate.runs.subjects import list_declared_checks

PHASE = "idle"
CHANNEL = "coverage"
EACH = timedelta(days=1)


def judge_coverage(
    context: ControllerContext,
    parts: Sequence[LoadPart],
    nodes: Sequence[Node],
    visited: Collection[str],
    states: Mapping[str, NodeState],
    folder: Path,
) -> None:
    """Judge those of `nodes` that are due by the checks of the phase `idle`. `folder`: for their evidence meanwhile."""
    checks, parts_of = list_declared_checks(context.fleet, [PHASE]), context.fleet.parts_of
    covered = [node.name for node in nodes if not all(check.find_lacking(parts_of(node.name)) for check in checks)]
    if not covered:
        return
    before = parse_time(context.now) - EACH
    known = _read_judged_at(context, covered, PHASE, loaded=False)
    due = {name for name, times in known if name in visited or not times or max(times) <= before}
    store = EvidenceStore(folder)
    judged = []
    for node in (node for node in nodes if node.name in due):
        possible = select_possible(parts, parts_of(node.name))
        judged += [node.name] if _store_evidence(context, store, node, possible, states) else []
    if judged:
        judge_phase(context, judged, PHASE, store.folder / "latest")
    rmtree(folder, ignore_errors=True)


def _read_judged_at(
    context: ControllerContext, names: Sequence[str], phase: str, *, loaded: bool
) -> Iterator[tuple[str, list[datetime]]]:
    """Yield each node with the times at which it was judged by a phase, of a load or without one."""
    for name, outcomes in read_latest_outcomes(context.ledger, names).items():
        judged = [each for each in outcomes if phase in each.outcome.phases and each.outcome.active == loaded]
        yield name, [parse_time(each.seen_at) for each in judged if each.seen_at]


def _store_evidence(
    context: ControllerContext, store: EvidenceStore, node: Node, parts: Sequence[str], states: Mapping[str, NodeState]
) -> bool:
    """Store the node's newest evidence with its coverage. A node that was never read has none, and is not judged."""
    known = context.evidence.latest(node.name)
    if known is None:
        return False
    coverage = read_coverage(context, node, parts, states[node.name])
    channels = {**known.channels, CHANNEL: coverage}
    now, head = context.clock.now(), context.ledger.head()
    store.store_latest(replace(known, at=now, channels=channels, after_entry=head))
    return True


def read_coverage(context: ControllerContext, node: Node, parts: Sequence[str], state: NodeState) -> ReadingTree:
    """Return the coverage of the node's GPUs by slot, by the ledger."""
    slots = find_gpu_slots(context, node)
    known = read_projection(context.ledger, COVERAGE)
    gpus = {slot: known.get(name) or GpuCoverage(name) for slot, name in slots.items()}
    return describe_coverage(gpus, parts, parse_time(state.since), context.clock.now())


def judge_loaded(
    context: ControllerContext, phase: Phase, loads: Sequence[IdleNodeResult], evidence: Path
) -> Iterator[RecordedOutcome]:
    """Judge loads that ended by themselves, and yield the outcomes. All are recorded."""
    for parts, names in _group_nodes({load.node: frozenset(load.active) for load in loads}).items():
        left_out = _deselect(context, parts, cut=False)
        result = judge_phase(context, names, phase, evidence, left_out)
        for outcome in result.stored.outcomes(nodes=names):
            yield RecordedOutcome(result.run.id, result.run.at, outcome)


def judge_cut(
    context: ControllerContext, phase: Phase, loads: Sequence[IdleNodeResult], store: EvidenceStore
) -> Iterator[RecordedOutcome]:
    """Judge what loads found before a customer cut them short; record and yield the failures."""
    computed = {load.node: parts for load in loads if (parts := list_parts(load.active))}
    groups = _group_nodes(computed)
    for load in loads:
        known = context.evidence.latest(load.node)
        channels = {**(known.channels if known else {}), "active": load.active}
        channels.pop("before", None)
        evidence = EvidenceDocument(load.node, context.clock.now(), channels, context.ledger.head())
        store.store_latest(identify_machine(context, evidence))
    for parts, names in groups.items():
        result = run_validation(
            context.fleet,
            store.folder / "latest",
            nodes=names,
            phases=[phase],
            reports=context.reports,
            ledger=None,
            clock=context.clock,
            extra=_deselect(context, parts, cut=True),
        )
        failures = list(result.stored.outcomes(nodes=names, verdicts=["fail"]))
        if failures:
            context.ledger.record(result.run, failures, context.clock.now())
        yield from (RecordedOutcome(result.run.id, result.run.at, outcome) for outcome in failures)
    if groups:
        write_run_history(context)


def _group_nodes(parts_by_node: Mapping[str, frozenset[str]]) -> dict[frozenset[str], list[str]]:
    """Return the nodes by the parts to judge them by. Checks of a part that was asked for and is absent are errors."""
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for name, parts in parts_by_node.items():
        groups[parts].append(name)
    return dict(groups)


def _deselect(context: ControllerContext, parts: frozenset[str], *, cut: bool) -> list[str]:
    """Return pytest's arguments that leave out the checks which these parts cannot answer."""
    return [f"--deselect={check}" for check in list_checks_to_leave_out(context, parts, cut=cut)]


VERIFICATION_MISSED = "verification.missed"
VISITED = ("passed", "failed", "unjudged", "yielded")
PROBE_ALLOWANCE_S = 120.0
"""The most time that a node's readings after its load, and the connections, may take."""


def verify_idle(context: ControllerContext, task: SlotTask) -> SlotResult:
    """Verify the idle nodes of a pool that can run something of the load."""
    how, started = task.line.schedule.verification, context.clock.now()
    assert how is not None  # the model requires it for this job
    states = read_node_states(context.ledger)
    pool = context.fleet.nodes_in_pool(task.line.target)
    able = [node for node in pool if select_possible(how.parts, context.fleet.parts_of(node.name))]
    nodes = [node for node in able if is_in_service(context, states.get(node.name))]
    readings = group_by_scheduler(nodes, context.workloads).read_statuses()
    for line in readings.describe_errors():
        context.progress(line)
    statuses = readings.statuses
    excluded = {
        node.name: result
        for node in nodes
        if (result := find_exclusion(context, states[node.name], statuses.get(node.name)))
    }
    selected = order_idle_nodes(context, [node for node in nodes if node.name not in excluded])
    results = [*excluded.values(), *_verify_nodes(context, task, how, selected, statuses)]
    passed = {result.node: statuses[result.node].cordon for result in results if result.outcome == "passed"}
    cordons = {name: cordon for name, cordon in passed.items() if cordon}
    context.ledger.append(*_give_back_nodes(context, task, cordons, started))
    visited = {result.node for result in results if result.outcome in VISITED}
    judge_coverage(context, how.parts, nodes, visited, states, _find_folder(context, task) / "coverage")
    used = [states[result.node] for result in results if result.outcome in ("busy", "yielded")]
    missed = find_missed_verifications(context, task, used)
    context.ledger.append(*missed)
    return SlotResult("done", _format_summary(results, missed), _make_facts(results))


def _verify_nodes(
    context: ControllerContext,
    task: SlotTask,
    how: IdleVerificationSpec,
    nodes: Sequence[Node],
    statuses: Mapping[str, SchedulerNodeStatus],
) -> list[IdleNodeResult]:
    """Load nodes, `how.at_once` at a time, and judge what the loads found. The ledger gets an entry for each visit."""
    folder = _find_folder(context, task)
    store = EvidenceStore(folder / task.id)
    for earlier in folder.glob("*") if task.attempt == 1 else ():
        rmtree(earlier)
    plans = plan_visits(context, how, nodes)
    visits = [NodeVisit(node, how, plans[node.name], statuses[node.name]) for node in nodes]
    loads = list(_load_nodes(context, visits, store, partial(_record_visit, context, task)))
    loaded = [load for load in loads if load.outcome == "loaded"]
    cut = [load for load in loads if load.outcome != "loaded" and load.active]
    outcomes = list(judge_loaded(context, how.phase, loaded, store.folder / "latest"))
    failures = list(judge_cut(context, how.phase, cut, EvidenceStore(folder / f"{task.id}-cut")))
    if outcomes or failures:
        record_outcome_faults(context, [*outcomes, *failures])
    rmtree(folder, ignore_errors=True)
    failed = {recorded.outcome.node for recorded in failures}
    results = [load for load in loads if load.outcome != "loaded" and load.node not in failed]
    results += [_classify_outcomes(name, failures) for name in sorted(failed)]
    return results + [_classify_outcomes(load.node, outcomes) for load in loaded]


def _find_folder(context: ControllerContext, task: SlotTask) -> Path:
    """Return the folder of the slot's own evidence; it is deleted at its end."""
    return context.home / "verification" / f"{task.line.name}.{task.line.target}"


def _record_visit(context: ControllerContext, task: SlotTask, visit: NodeVisit, load: IdleNodeResult) -> None:
    """Append the entry of a visit in which a part ran, or which a customer ended."""
    if load.active or load.gone_ms is not None:
        reason = load.reason if load.outcome == "yielded" else ""
        entry = make_visit_entry(context, task, visit, load.active, reason, load.gone_ms)
        context.ledger.append(entry)


def _load_nodes(
    context: ControllerContext,
    visits: Sequence[NodeVisit],
    store: EvidenceStore,
    record: Callable[[NodeVisit, IdleNodeResult], None],
) -> Iterator[IdleNodeResult]:
    """Load nodes. One that never ends is left behind at its deadline, and delays no other."""

    def load(visit: NodeVisit) -> IdleNodeResult:
        name = visit.node.name
        if earlier := store.latest(name):  # an earlier attempt at this slot loaded it
            return IdleNodeResult(name, "loaded", active=earlier.channels.get("active", {}))
        context.progress(f"{name}: loading it with {', '.join(visit.plan.parts)} …")
        result = load_idle_node(context, visit, store)
        record(visit, result)
        return result

    if not visits:
        return
    how = visits[0].how
    limit_s = how.within_minutes * 60 + PROBE_ALLOWANCE_S
    queries = [NodeQuery((visit.node.name, "load"), partial(load, visit), limit_s) for visit in visits]
    for query, answer in run_queries(queries, how.at_once, math.inf):
        name = query.key[0]
        yield IdleNodeResult(name, "unknown", describe_error(answer)) if isinstance(answer, Exception) else answer


def _classify_outcomes(name: str, outcomes: Iterable[RecordedOutcome]) -> IdleNodeResult:
    own = [recorded.outcome for recorded in outcomes if recorded.outcome.node == name]
    against = [outcome for outcome in own if outcome.counts_against_subject]
    for verdict, result in (("fail", "failed"), ("error", "unjudged")):
        if first := next((outcome for outcome in against if outcome.verdict == verdict), None):
            return IdleNodeResult(name, result, f"{first.check.rpartition('::')[2]}: {first.reason}")
    if any(outcome.verdict == "pass" and outcome.active for outcome in own):
        return IdleNodeResult(name, "passed")
    return IdleNodeResult(name, "unjudged", "no check that loads the node passed")


def _give_back_nodes(
    context: ControllerContext, task: SlotTask, cordons: Mapping[str, str], started: datetime
) -> Iterator[LedgerEntry]:
    """Lift the `cordons`, by node, that a passed verification ends; yield an entry for each that a reading proves gone.

    A node about which something was decided meanwhile stays as it is.
    """
    states = read_node_states(context.ledger) if cordons else {}
    for name, cordon in cordons.items():
        state = states[name]
        changed = not is_in_service(context, state) or state.pending or state.hold or state.unsettled_effects
        if changed or "uncordon" not in context.fleet.profile_of(name).actions:
            continue
        if context.fleet.find_trust(name, ["uncordon"]).step != "act":
            continue
        scheduler = context.workloads(context.fleet.nodes[name])
        try:
            if VERIFY_UNDRAIN in cordon or not is_our_reason(cordon):
                reason = undrain_if_supported(scheduler, name, started)
            else:
                scheduler.uncordon(name)
                reason = cordon
            left = scheduler.read_cordon_reason(name) if reason else ""
        except AssayError as error:
            context.progress(f"{name}: cannot be given back: {error}")
            continue
        if reason and not left:
            undrained = NodeUndrainedEntry(task.line.name, task.slot.isoformat(), reason)
            yield undrained.make_entry(derive_id(task.id, "undrained", name), context.now, name)


def find_missed_verifications(
    context: ControllerContext, task: SlotTask, node_states: Sequence[NodeState]
) -> list[LedgerEntry]:
    """Return an entry for each node whose last verification is more than `told_after` slots ago, once for each."""
    how, oldest = task.line.schedule.verification, _find_oldest_allowed(task.line, task.slot)
    if how is None or oldest is None or not node_states:
        return []
    since = {node_state.node: parse_time(node_state.since) for node_state in node_states}
    entries = []
    for name, times in _read_judged_at(context, list(since), how.phase, loaded=True):
        # the last time at which it was loaded and judged; a node that came into its state later counts from then
        last = max([*times, since[name]])
        if last < oldest:
            seen = f"not verified since {last:%Y-%m-%d %H:%M} UTC"
            reason = f"it was in use in the last {how.told_after} slots and more: {seen}"
            ident = derive_id(VERIFICATION_MISSED, task.line.name, name, format_time(last))
            missed = VerificationMissedEntry(task.line.name, format_time(last), reason)
            entries.append(missed.make_entry(ident, context.now, name))
    return entries


def _find_oldest_allowed(line: ScheduleLine, slot: datetime) -> datetime | None:
    """Return the slot that is `told_after` slots before this one."""
    at: datetime | None = slot
    for _ in range(line.schedule.verification.told_after if line.schedule.verification else 0):
        at = find_previous_slot(line.schedule, line.zone, at - SMALLEST_STEP) if at else None
    return at


def _make_facts(results: Sequence[IdleNodeResult]) -> dict[str, Any]:
    """Return the results for the ledger: by outcome, the folded node names by reason."""
    facts: dict[str, Any] = {}
    for outcome in OUTCOME_WORDS:
        by_reason: dict[str, list[str]] = {}
        for result in results:
            if result.outcome == outcome:
                by_reason.setdefault(result.reason, []).append(result.node)
        if by_reason:
            facts[outcome] = {reason: fold_names(names) for reason, names in by_reason.items()}
    if waits := [result.gone_ms for result in results if result.gone_ms is not None]:
        facts["gone_ms"] = sorted(waits)
    return facts


def _format_summary(results: Sequence[IdleNodeResult], missed: Sequence[LedgerEntry]) -> str:
    parts = []
    for outcome, word in OUTCOME_WORDS.items():
        if own := [result for result in results if result.outcome == outcome]:
            names = format_list(fold_names(result.node for result in own), 4)
            reasons = {result.reason for result in own}
            reason = reasons.pop() if len(reasons) == 1 else ""
            parts.append(f"{len(own)} {word} ({f'{names}: {reason}' if reason else names})")
    if waits := [result.gone_ms for result in results if result.gone_ms is not None]:
        parts.append(f"customers waited {max(waits) / 1000:.1f} s at most")
    if missed:
        parts.append(f"{format_count(len(missed), 'node')} not verified for too long")
    return ", ".join(parts) or "no node of the pool is in service"
