"""Cordons and uncordons of many nodes in one go: intents, one order to each scheduler, one reading, ends.

Both may be done twice without harm and are proved by one reading, so they need no workflow: what a killed process left
is found in the ledger and done in the next batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from assay.actions import cordon, uncordon
from assay.actions.action import ActionContext, EffectIntent, EffectVerification
from assay.controller.effects import effect_journal
from assay.controller.effects.effect_steps import (
    AttemptResult,
    add_error,
    describe_effect_error,
    describe_executor,
    format_verification,
    make_result_entry,
)
from assay.model.ledger_entry import LedgerEntry
from assay.schedulers.scheduler_adapter import SchedulerAdapter, SchedulerNodeStatus

AT_ONCE = 16
STATUS_VERIFIERS = {"cordon": cordon.verify_cordon_status, "uncordon": uncordon.verify_uncordon_status}


@dataclass(frozen=True, slots=True)
class SchedulerReading:
    """What one reading of all schedulers told: how nodes stand, and of the others why nobody can say."""

    statuses: Mapping[str, SchedulerNodeStatus]
    errors: Mapping[str, str]


def run_cordon_batch(
    ctx: ActionContext, wishes: Sequence[tuple[EffectIntent, effect_journal.JournaledEffect | None]]
) -> None:
    """Carry these effects as far as they get, each with what the ledger has of it; all are of `IN_ONE_GO`."""
    intents = {intent.node: intent for intent, _ in wishes}
    known = {intent.node: before for intent, before in wishes}
    schedulers = _group_by_scheduler(ctx, intents)
    seen = _read_statuses(schedulers)
    _journal_intents(ctx, [intent for intent, before in wishes if before is None], seen)
    todo = [intent for intent in intents.values() if not _verify(intent, seen).done]
    deeds = _send_orders(schedulers, todo)
    seen = _read_statuses(schedulers) if todo else seen
    ends = []
    for intent in intents.values():
        ends += _make_end_entries(ctx, intent, known[intent.node], deeds.get(intent.node), _verify(intent, seen))
    ctx.ledger.append(*ends)


def _group_by_scheduler(ctx: ActionContext, nodes: Iterable[str]) -> dict[SchedulerAdapter | str, list[str]]:
    """Return the nodes of each scheduler; of those without one that can be asked, by what is wrong."""
    found: dict[SchedulerAdapter | str, list[str]] = defaultdict(list)
    for node in nodes:
        try:
            found[ctx.scheduler(node)].append(node)
        except Exception as error:  # whatever it is, its other nodes go on
            found[describe_effect_error(error)].append(node)
    return found


def _read_statuses(schedulers: Mapping[SchedulerAdapter | str, Collection[str]]) -> SchedulerReading:
    standing: dict[str, SchedulerNodeStatus] = {}
    silent: dict[str, str] = {}
    for scheduler, nodes in schedulers.items():
        try:
            told = {} if isinstance(scheduler, str) else scheduler.read_statuses(nodes)
            wrong = scheduler if isinstance(scheduler, str) else "the scheduler does not know this node"
        except Exception as error:  # whatever it is, it is no proof
            told, wrong = {}, describe_effect_error(error)
        standing |= told
        silent |= {node: wrong for node in nodes if node not in told}
    return SchedulerReading(standing, silent)


def _journal_intents(ctx: ActionContext, intents: Sequence[EffectIntent], seen: SchedulerReading) -> None:
    at = ctx.clock.now().isoformat()
    for intent in intents:
        ctx.progress(f"{intent.node}: {intent.action} …")
    ctx.ledger.append(
        *(
            effect_journal.make_intent_entry(one, at, _facts_before(one.node, seen), describe_executor(ctx, one.action))
            for one in intents
        )
    )


def _facts_before(node: str, seen: SchedulerReading) -> dict[str, str]:
    return {"cordon": seen.statuses[node].cordon} if node in seen.statuses else {"unread": seen.errors[node]}


def _send_orders(
    schedulers: Mapping[SchedulerAdapter | str, Collection[str]], todo: Sequence[EffectIntent]
) -> dict[str, AttemptResult]:
    """Do it; return by node what the doing says of itself."""
    wanted = {intent.node: intent for intent in todo}
    deeds: dict[str, AttemptResult] = {}
    for scheduler, nodes in schedulers.items():
        if not isinstance(scheduler, str):
            deeds |= _send_scheduler_orders(scheduler, [wanted[node] for node in nodes if node in wanted])
    return deeds


def _send_scheduler_orders(scheduler: SchedulerAdapter, intents: Sequence[EffectIntent]) -> dict[str, AttemptResult]:
    cordons = {intent.node: intent.reason for intent in intents if intent.action == "cordon"}
    deeds = dict.fromkeys(cordons, _attempt(lambda: scheduler.cordon_many(cordons))) if cordons else {}
    others = [intent.node for intent in intents if intent.action == "uncordon"]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        tries = threads.map(lambda node: _attempt(lambda: scheduler.uncordon(node)), others)
        return deeds | dict(zip(others, tries, strict=True))


def _attempt(deed: Callable[[], None]) -> AttemptResult:
    try:
        deed()
    except Exception as error:  # whatever it is, the world is read afterwards and decides
        return AttemptResult(describe_effect_error(error))
    return AttemptResult()


def _verify(intent: EffectIntent, seen: SchedulerReading) -> EffectVerification:
    if intent.node not in seen.statuses:
        return EffectVerification(None, seen.errors[intent.node])
    return STATUS_VERIFIERS[intent.action](seen.statuses[intent.node])


def _make_end_entries(
    ctx: ActionContext,
    intent: EffectIntent,
    known: effect_journal.JournaledEffect | None,
    deed: AttemptResult | None,
    told: EffectVerification,
) -> list[LedgerEntry]:
    """Return the lines that end an effect, or leave it open."""
    wrong = deed.error if deed else ""
    told = add_error(told, wrong)
    ctx.progress(f"{intent.node}: {intent.action}: {format_verification(told)}")
    tried = known.attempts if known else 0
    done = [effect_journal.make_done_entry(intent, ctx.clock.now().isoformat(), wrong, tried)] if deed else []
    return [*done, make_result_entry(ctx, intent, told, known, again=bool(wrong))]
