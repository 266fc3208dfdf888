"""Verifies idle nodes in production: loads them in their spare time, judges what came of it, and counts it.

A node that is in use is left to the next slot, one that makes room for a customer in the middle of it too: that is
neither pass nor fail. A node whose drain asks for it is loaded where it is, since nobody can be placed there, and is
given back after it passed; so is one that serves and has a cordon of ours all the same, as of a hook that saw something
pass by. What was loaded stays with the slot until it ended: whoever takes it up goes on from there.

Tells of nodes that were in use in so many slots that nobody has verified them for too long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from shutil import rmtree
from typing import Any

from assay.controller.background_worker import describe_error
from assay.controller.cache.ledger_cache import read_node_states
from assay.controller.context import ControllerContext
from assay.controller.ingest.suite_runs import judge_phase, record_outcome_faults
from assay.controller.scheduler_status import read_scheduler_statuses
from assay.controller.schedules.due_slots import ScheduleLine, SlotTask
from assay.controller.schedules.idle_load import NodeLoadResult, load_idle_node
from assay.controller.schedules.slot_runner import SlotResult
from assay.lifecycle.node_state import NodeState
from assay.model.errors import AssayError
from assay.model.fleet import Node
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog_and_gates import Phase
from assay.model.specs.schedules import SMALLEST_STEP, IdleVerificationSpec, find_previous_slot
from assay.model.text_lists import fold_names, format_count, format_list
from assay.model.timestamps import format_time, parse_time
from assay.observe.evidence_store import EvidenceStore
from assay.observe.query_pool import NodeQuery, run_queries
from assay.schedulers.scheduler_adapter import (
    VERIFY_UNDRAIN,
    SchedulerAdapter,
    SchedulerNodeStatus,
    format_jobs,
    is_our_reason,
    undrain_if_supported,
)

VERIFICATION_MISSED = "verification.missed"


def find_missed_verifications(
    desk: ControllerContext, task: SlotTask, stories: Sequence[NodeState]
) -> list[LedgerEntry]:
    """Return a line for each of these nodes whose last verification is too many slots ago; one for each such time."""
    how, since = task.line.schedule.verification, _find_oldest_allowed(task.line, task.slot)
    if how is None or since is None or not stories:
        return []
    outcomes: dict[str, list[RecordedOutcome]] = {story.node: [] for story in stories}
    for one in desk.ledger.latest(nodes=list(outcomes)):
        outcomes[one.outcome.node].append(one)
    last = {story.node: _find_last_verification(story, outcomes[story.node], how.phase) for story in stories}
    return [_make_missed_entry(desk, task, name, at, how.told_after) for name, at in last.items() if at < since]


def _find_oldest_allowed(line: ScheduleLine, slot: datetime) -> datetime | None:
    """Return the slot before which nobody may have been verified last."""
    at: datetime | None = slot
    for _ in range(line.schedule.verification.told_after if line.schedule.verification else 0):
        at = find_previous_slot(line.schedule, line.zone, at - SMALLEST_STEP) if at else None
    return at


def _find_last_verification(story: NodeState, outcomes: Iterable[RecordedOutcome], phase: Phase) -> datetime:
    """Return when the node was loaded and judged last; since it is where it is at the latest."""
    seen = [one.seen_at for one in outcomes if one.outcome.active and phase in one.outcome.phases]
    return max([parse_time(at) for at in seen if at] + [parse_time(story.since)])


def _make_missed_entry(desk: ControllerContext, task: SlotTask, name: str, at: datetime, slots: int) -> LedgerEntry:
    reason = f"it was in use in the last {slots} slots and more: not verified since {at:%Y-%m-%d %H:%M} UTC"
    body = {"schedule": task.line.name, "since": format_time(at), "reason": reason}
    return LedgerEntry(
        derive_id(VERIFICATION_MISSED, task.line.name, name, format_time(at)), desk.now, VERIFICATION_MISSED, name, body
    )


PROBE_ALLOWANCE_S = 120.0
"""What a node's readings after its load, and the ways there, may take at most."""
OUTCOME_WORDS = {
    "passed": "passed",
    "failed": "failed",
    "unjudged": "could not be judged",
    "yielded": "made room",
    "busy": "in use",
    "unknown": "could not be loaded",
    "skipped": "left out",
}
"""How it came out for a node, in the order in which it is told."""


@dataclass(frozen=True, slots=True)
class IdleNodeResult:
    """How a verification came out for one node: a key of WORDS, and why."""

    node: str
    outcome: str
    why: str = ""


def verify_idle(desk: ControllerContext, task: SlotTask) -> SlotResult:
    """Verify the idle nodes of a pool. Raises Trouble where its scheduler cannot be asked at all."""
    how, began = task.line.schedule.verification, desk.clock.now()
    assert how is not None  # the model sees to it
    stories = read_node_states(desk.ledger)
    nodes = [
        node for node in desk.fleet.nodes_in_pool(task.line.target) if _is_in_service(desk, stories.get(node.name))
    ]
    standings = read_scheduler_statuses(nodes, desk.workloads, desk.progress)
    left = [result for node in nodes if (result := _find_exclusion(desk, stories[node.name], standings.get(node.name)))]
    chosen = [node for node in nodes if node.name not in {one.node for one in left}]
    results = [*left, *_verify_nodes(desk, task, how, chosen, standings)]
    passed = {one.node: standings[one.node].cordon for one in results if one.outcome == "passed"}
    closed = {name: cordon for name, cordon in passed.items() if cordon}
    desk.ledger.append(*_give_back_nodes(desk, task, closed, began))
    late = find_missed_verifications(
        desk, task, [stories[one.node] for one in results if one.outcome in ("busy", "yielded")]
    )
    desk.ledger.append(*late)
    return SlotResult("done", _format_summary(results, late), _make_facts(results))


def _is_in_service(desk: ControllerContext, story: NodeState | None) -> bool:
    return story is not None and story.state in desk.policy.states and desk.policy.states[story.state].in_service


def _find_exclusion(
    desk: ControllerContext, story: NodeState, standing: SchedulerNodeStatus | None
) -> IdleNodeResult | None:
    """Return why a node is not verified now, None where it is."""
    if story.hold:
        return IdleNodeResult(story.node, "skipped", f"held by {story.hold.who}: {story.hold.reason}")
    if not desk.fleet.profile_of(story.node).acts_on_faults:
        return IdleNodeResult(
            story.node, "skipped", f"profile {desk.fleet.nodes[story.node].profile}: faults are not acted on"
        )
    if story.pending or story.unsettled_effects:
        return IdleNodeResult(story.node, "skipped", "about to leave, or something that was begun there is not over")
    if standing is None:
        return IdleNodeResult(story.node, "unknown", "its scheduler cannot tell whether it is in use")
    if standing.jobs:
        return IdleNodeResult(story.node, "busy", format_jobs(standing.jobs))
    if standing.cordon and not (VERIFY_UNDRAIN in standing.cordon or is_our_reason(standing.cordon)):
        return IdleNodeResult(story.node, "skipped", f"cordoned: {standing.cordon}")
    return None


def _verify_nodes(
    desk: ControllerContext,
    task: SlotTask,
    how: IdleVerificationSpec,
    nodes: Sequence[Node],
    standings: Mapping[str, SchedulerNodeStatus],
) -> list[IdleNodeResult]:
    """Load nodes, so many at a time, and judge them."""
    folder = desk.home / "verification" / f"{task.line.name}.{task.line.target}"
    store = EvidenceStore(folder / task.id)
    for other in folder.glob("*") if task.attempt == 1 else ():
        rmtree(other)
    loaded = list(_load_nodes(desk, how, nodes, standings, store))
    names = [one.node for one in loaded if one.outcome == "loaded"]
    outcomes = _judge_nodes(desk, how, names, store) if names else []
    rmtree(folder, ignore_errors=True)
    not_loaded = [IdleNodeResult(one.node, one.outcome, one.why) for one in loaded if one.outcome != "loaded"]
    return not_loaded + [_classify_outcomes(name, outcomes) for name in names]


def _load_nodes(
    desk: ControllerContext,
    how: IdleVerificationSpec,
    nodes: Sequence[Node],
    standings: Mapping[str, SchedulerNodeStatus],
    store: EvidenceStore,
) -> Iterator[NodeLoadResult]:
    """Load nodes, so many at a time; one that comes to no end is left behind, and holds nobody else."""
    limit_s = how.within_minutes * 60 + PROBE_ALLOWANCE_S
    questions = [
        NodeQuery((node.name, "load"), partial(_load_once, desk, node, how, standings[node.name], store), limit_s)
        for node in nodes
    ]
    for question, answer in run_queries(questions, how.at_once, math.inf):
        name = question.key[0]
        yield NodeLoadResult(name, "unknown", describe_error(answer)) if isinstance(answer, Exception) else answer


def _load_once(
    desk: ControllerContext, node: Node, how: IdleVerificationSpec, standing: SchedulerNodeStatus, store: EvidenceStore
) -> NodeLoadResult:
    if store.latest(node.name):
        return NodeLoadResult(node.name, "loaded")
    desk.progress(f"{node.name}: loading it with {', '.join(how.parts)} …")
    return load_idle_node(desk, node, how, standing, store)


def _judge_nodes(
    desk: ControllerContext, how: IdleVerificationSpec, names: Sequence[str], store: EvidenceStore
) -> list[RecordedOutcome]:
    """Judge what was loaded, and let what came of it count."""
    result = judge_phase(desk, names, how.phase, store.folder / "latest")
    outcomes = [RecordedOutcome(result.run.id, result.run.at, one) for one in result.stored.outcomes(nodes=names)]
    record_outcome_faults(desk, outcomes)
    return outcomes


def _classify_outcomes(name: str, outcomes: Iterable[RecordedOutcome]) -> IdleNodeResult:
    own = [one.outcome for one in outcomes if one.outcome.node == name]
    against = [one for one in own if one.counts_against_subject]
    for verdict, came in (("fail", "failed"), ("error", "unjudged")):
        if first := next((one for one in against if one.verdict == verdict), None):
            return IdleNodeResult(name, came, f"{first.check.rpartition('::')[2]}: {first.reason}")
    if any(one.verdict == "pass" and one.active for one in own):
        return IdleNodeResult(name, "passed")
    return IdleNodeResult(name, "unjudged", "no check that loads the node passed")


def _give_back_nodes(
    desk: ControllerContext, task: SlotTask, closed: Mapping[str, str], began: datetime
) -> Iterator[LedgerEntry]:
    """Undo drains that a passed verification ends, look whether they are gone, and say so.

    `closed` are the nodes with their cordons. One that has been decided about meanwhile stays as it is.
    """
    stories = read_node_states(desk.ledger) if closed else {}
    for name, cordon in closed.items():
        story = stories[name]
        decided = not _is_in_service(desk, story) or story.pending or story.hold or story.unsettled_effects
        if decided or "uncordon" not in desk.fleet.profile_of(name).actions:
            continue
        scheduler = desk.workloads(desk.fleet.nodes[name])
        try:
            reason = _undo_cordon(scheduler, name, cordon, began)
            stands = scheduler.read_cordon_reason(name) if reason else ""
        except AssayError as trouble:
            desk.progress(f"{name}: cannot be given back: {trouble}")
            continue
        if reason and not stands:
            body = {"schedule": task.line.name, "slot": task.slot.isoformat(), "reason": reason}
            yield LedgerEntry(derive_id(task.id, "undrained", name), desk.now, "node.undrained", name, body)


def _undo_cordon(scheduler: SchedulerAdapter, name: str, cordon: str, began: datetime) -> str:
    """Undo what a passed verification ends; return its reason, "" where it asks for more."""
    if VERIFY_UNDRAIN in cordon or not is_our_reason(cordon):
        return undrain_if_supported(scheduler, name, began)
    scheduler.uncordon(name)
    return cordon


def _make_facts(results: Iterable[IdleNodeResult]) -> dict[str, Any]:
    """Return the results for history: names where that is all, else names by reason, both folded."""
    facts: dict[str, Any] = {}
    for came in OUTCOME_WORDS:
        by_reason: dict[str, list[str]] = {}
        for one in _select_results(results, came):
            by_reason.setdefault(one.why, []).append(one.node)
        if by_reason:
            facts[came] = {why: fold_names(names) for why, names in by_reason.items()}
    return facts


def _format_summary(results: Sequence[IdleNodeResult], late: Sequence[LedgerEntry]) -> str:
    parts = [
        f"{len(own)} {word} ({_format_nodes(own)})"
        for came, word in OUTCOME_WORDS.items()
        if (own := _select_results(results, came))
    ]
    told = [f"{format_count(len(late), 'node')} not verified for too long"] if late else []
    return ", ".join([*parts, *told]) or "no node of the pool serves"


def _select_results(results: Iterable[IdleNodeResult], came: str) -> list[IdleNodeResult]:
    return [one for one in results if one.outcome == came]


def _format_nodes(results: Sequence[IdleNodeResult]) -> str:
    """Return the nodes, and the reason where they have it in common."""
    names, reasons = format_list(fold_names(one.node for one in results), 4), {one.why for one in results}
    why = reasons.pop() if len(reasons) == 1 else ""
    return f"{names}: {why}" if why else names
