"""Cordons and uncordons many nodes together: intents, one order to each scheduler, one reading, ends.

Both actions do no harm when repeated, and one reading proves them. So they need no workflow: the next batch finds in
the ledger what a killed process left, and does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from assay.act.actions import cordon, uncordon
from assay.act.actions.action import ActionContext, EffectIntent, EffectVerification
from assay.act.effects import effect_journal
from assay.act.effects.effect_attempt_and_verification import (
    AttemptResult,
    add_error,
    format_verification,
    make_result_entry,
)
from assay.adapters.scheduler import SchedulerAdapter, SchedulerGroups, StatusReadings, group_by_scheduler
from assay.model.errors import describe_error
from assay.model.ledger_entry import LedgerEntry

UNCORDONS_AT_ONCE = 16
STATUS_VERIFIERS = {"cordon": cordon.verify_cordon_status, "uncordon": uncordon.verify_uncordon_status}
"""The actions that are done to many nodes together, and how the status of a node proves each."""
UNKNOWN_NODE = "the scheduler does not know this node"


def run_cordon_batch(
    context: ActionContext, effects: Sequence[tuple[EffectIntent, effect_journal.JournaledEffect | None]]
) -> None:
    """Run these effects, each with what the ledger has of it; all are of STATUS_VERIFIERS, at most one for a node."""
    intents = {intent.node: intent for intent, _ in effects}
    known = {intent.node: recorded for intent, recorded in effects}
    groups = group_by_scheduler([context.fleet.nodes[name] for name in intents], context.workloads)
    readings = groups.read_statuses()
    _journal_intents(context, [intent for intent, recorded in effects if recorded is None], readings)
    todo = [intent for intent in intents.values() if not _verify(intent, readings).done]
    results = _send_orders(groups, todo)
    readings = groups.read_statuses() if todo else readings
    entries: list[LedgerEntry] = []
    for intent in intents.values():
        entries += _make_end_entries(
            context, intent, known[intent.node], results.get(intent.node), _verify(intent, readings)
        )
    context.ledger.append(*entries)


def _journal_intents(context: ActionContext, intents: Sequence[EffectIntent], readings: StatusReadings) -> None:
    at, entries = context.clock.now().isoformat(), list[LedgerEntry]()
    for intent in intents:
        context.progress(f"{intent.node}: {intent.action} …")
        if status := readings.statuses.get(intent.node):
            before = {"cordon": status.cordon}
        else:
            before = {"unread": readings.errors.get(intent.node, UNKNOWN_NODE)}
        executor = effect_journal.describe_executor(context, intent.action)
        entries.append(effect_journal.make_intent_entry(intent, at, before, executor))
    context.ledger.append(*entries)


def _send_orders(groups: SchedulerGroups, todo: Sequence[EffectIntent]) -> Mapping[str, AttemptResult]:
    """Send the orders of each scheduler; return the result for each node."""
    wanted = {intent.node: intent for intent in todo}
    results: dict[str, AttemptResult] = {}
    for scheduler, nodes in groups.nodes.items():
        results |= _send_scheduler_orders(scheduler, [wanted[node] for node in nodes if node in wanted])
    return results


def _send_scheduler_orders(scheduler: SchedulerAdapter, intents: Sequence[EffectIntent]) -> dict[str, AttemptResult]:
    cordons = {intent.node: intent.reason for intent in intents if intent.action == "cordon"}
    results = dict.fromkeys(cordons, _attempt(lambda: scheduler.cordon_many(cordons))) if cordons else {}
    uncordons = [intent.node for intent in intents if intent.action == "uncordon"]
    with ThreadPoolExecutor(UNCORDONS_AT_ONCE) as threads:
        others = threads.map(lambda node: _attempt(lambda: scheduler.uncordon(node)), uncordons)
        return results | dict(zip(uncordons, others, strict=True))


def _attempt(order: Callable[[], None]) -> AttemptResult:
    try:
        order()
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        return AttemptResult(describe_error(error))
    return AttemptResult()


def _verify(intent: EffectIntent, readings: StatusReadings) -> EffectVerification:
    if intent.node not in readings.statuses:
        return EffectVerification(None, readings.errors.get(intent.node, UNKNOWN_NODE))
    return STATUS_VERIFIERS[intent.action](readings.statuses[intent.node])


def _make_end_entries(
    context: ActionContext,
    intent: EffectIntent,
    known: effect_journal.JournaledEffect | None,
    result: AttemptResult | None,
    verification: EffectVerification,
) -> list[LedgerEntry]:
    """Return the entries that end an effect, or leave it open."""
    error = result.error if result else ""
    verification = add_error(verification, error)
    context.progress(f"{intent.node}: {intent.action}: {format_verification(verification)}")
    at, attempts = context.clock.now().isoformat(), known.attempts if known else 0
    done = [effect_journal.make_done_entry(intent, at, error, attempts)] if result else []
    return [*done, make_result_entry(context, intent, verification, known, may_retry=bool(error))]
