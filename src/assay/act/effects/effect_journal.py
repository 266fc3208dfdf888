"""The journal of an effect in the ledger: an intent, then done, then exactly one of verified and failed.

`journal_intent` writes the intent before anything is done. After a crash, `find_journaled_effect` finds how far it got.
`effect.unknown` records that the world could not be read; only a later reading ends such an effect. `effect.tried`
records that an attempt achieved nothing, and when the next one may start.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from assay.act.actions.action import (
    ActionContext,
    ActionModule,
    EffectFacts,
    EffectIntent,
    EffectVerification,
    find_action_effort,
)
from assay.act.loop.projections import read_node_states
from assay.model.entries.effects import (
    EffectDoneEntry,
    EffectFailedEntry,
    EffectIntentEntry,
    EffectProgressEntry,
    EffectTriedEntry,
    EffectUnknownEntry,
    EffectVerifiedEntry,
)
from assay.model.entries.registry import decode_entry
from assay.model.errors import describe_error
from assay.model.facts import extend, frozen
from assay.model.ledger_entry import LedgerEntry, derive_id

EFFECT_KINDS = ("effect.intent", "effect.done", "effect.tried", "effect.verified", "effect.failed", "effect.unknown")
EffectStatus = Literal["intent", "done", "tried", "verified", "failed", "unknown"]


@frozen
class JournaledEffect:
    """One effect as the ledger has it: its intent, its status and the last reason.

    `attempts` counts those that achieved nothing. The next one starts no earlier than `retry_at` (ISO 8601).
    """

    intent: EffectIntent
    status: EffectStatus
    reason: str = ""
    attempts: int = 0
    retry_at: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether a reading of the world has ended it."""
        return self.status in ("verified", "failed")


@frozen
class PendingEffect:
    """An effect that can run now, and what the ledger has of it. One that is superseded is only verified."""

    intent: EffectIntent
    recorded: JournaledEffect | None
    is_superseded: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether a reading of the world has ended it."""
        return bool(self.recorded and self.recorded.has_ended)

    @property
    def due_at(self) -> str:
        """When its next attempt may start (ISO 8601), "" for any time."""
        return self.recorded.retry_at if self.recorded and self.recorded.status == "tried" else ""

    @property
    def needs_verification(self) -> bool:
        """Whether the world must be read first: the last attempt may have worked."""
        if self.recorded is None or self.has_ended:
            return False
        return self.is_superseded or self.recorded.status in ("done", "unknown")

    @property
    def begins_attempt(self) -> bool:
        """Whether the next thing to do is an attempt, and not the proof of one."""
        return not self.is_superseded and (self.recorded is None or self.recorded.status == "tried")


def journal_intent(context: ActionContext, action: ActionModule, intent: EffectIntent) -> EffectIntent:
    """Journal the intent with the facts before it; return it as the ledger has it, from now or from before a crash."""
    if known := find_journaled_effect(context, intent):
        return known.intent
    if not is_same_machine(context, intent):
        return intent
    try:
        before = action.before(context, intent)
    except Exception as error:  # whatever it is, the intent is journalled before anything is done
        before = {"unread": describe_error(error)}
    executor = describe_executor(context, intent.action)
    context.ledger.append(make_intent_entry(intent, context.clock.now().isoformat(), before, executor))
    return find_journaled_effect(context, intent).intent  # type: ignore[union-attr]  # just appended


def find_journaled_effect(context: ActionContext, intent: EffectIntent) -> JournaledEffect | None:
    """Return the effect as the ledger has it, None where its intent was never journalled."""
    entries = context.ledger.entries(intent.node, EFFECT_KINDS)
    return parse_effects(entries).get(intent.effect)


def is_same_machine(context: ActionContext, intent: EffectIntent) -> bool:
    """Whether the node's name still stands for the machine that the effect is about.

    A renamed machine takes its effects along. Nothing is done and nothing journalled under its old name any more.
    """
    state = read_node_states(context.ledger).get(intent.node) if intent.named_by else None
    return not intent.named_by or (state is not None and state.named_by == intent.named_by)


def describe_executor(context: ActionContext, action: str) -> dict[str, Any]:
    """Return this process, and the real time after which nothing of its attempt can be at work any more."""
    until = datetime.now(UTC) + timedelta(seconds=find_action_effort(context.fleet, action).deadline_s)
    return {"host": socket.gethostname(), "pid": os.getpid(), "until": until.isoformat(timespec="seconds")}


def derive_effect_id(decision: str, action: str) -> str:
    """Return the id of the effect `action` of a decision."""
    return derive_id(decision, action)


def make_intent_entry(intent: EffectIntent, at: str, before: EffectFacts, by: Mapping[str, Any]) -> LedgerEntry:
    """Return the entry that is appended before anything is done; `by` is the process, and its deadline."""
    content = extend(EffectIntentEntry, intent, before=before, params=dict(intent.params), by=dict(by))
    return content.make_entry(intent.effect, at, intent.node)


def make_done_entry(intent: EffectIntent, at: str, error: str, attempts: int = 0) -> LedgerEntry:
    """Return the entry for an attempt that is over, with its error or "". It proves nothing."""
    content = EffectDoneEntry(intent.effect, intent.action, error)
    return content.make_entry(_derive_entry_id(intent, "done", attempts), at, intent.node)


def make_retry_entry(intent: EffectIntent, at: str, attempt: int, reason: str, retry_at: str) -> LedgerEntry:
    """Return the entry for attempt number `attempt`, which achieved nothing, and when the next may start."""
    content = EffectTriedEntry(intent.effect, intent.action, attempt, reason, retry_at)
    return content.make_entry(_derive_entry_id(intent, "tried", attempt), at, intent.node)


def make_end_entry(intent: EffectIntent, at: str, verification: EffectVerification, attempts: int = 0) -> LedgerEntry:
    """Return the entry for a reading of the world. Its id is the same each time, so a second append adds nothing."""
    status: EffectStatus = "unknown"
    if verification.done is not None:
        status = "verified" if verification.done else "failed"
    content = _END_ENTRIES[status](intent.effect, intent.action, verification.reason, verification.facts)
    ident = _derive_entry_id(intent, status, attempts if status == "unknown" else 0)
    return content.make_entry(ident, at, intent.node)


_END_ENTRIES: dict[EffectStatus, type[EffectProgressEntry]] = {
    "verified": EffectVerifiedEntry,
    "failed": EffectFailedEntry,
    "unknown": EffectUnknownEntry,
}


def parse_effects(entries: Iterable[LedgerEntry]) -> dict[str, JournaledEffect]:
    """Return every effect of these entries by id, in the order of their intents."""
    effects: dict[str, JournaledEffect] = {}
    for entry in entries:
        if entry.kind not in EFFECT_KINDS:
            continue
        content = decode_entry(entry)
        if isinstance(content, EffectIntentEntry):
            before = dict(content.before)
            intent = extend(EffectIntent, content, node=entry.node, at=entry.at, before=before)
            effects[content.effect] = JournaledEffect(intent, "intent")
        elif isinstance(content, EffectTriedEntry | EffectProgressEntry):
            effect = effects.get(content.effect)
            if effect and not effect.has_ended:
                effects[content.effect] = _advance(effect, content)
    return effects


def _advance(effect: JournaledEffect, content: EffectTriedEntry | EffectProgressEntry) -> JournaledEffect:
    """Return the effect one entry later."""
    if isinstance(content, EffectTriedEntry):
        return JournaledEffect(effect.intent, "tried", content.reason, content.attempt, content.again_at)
    status: EffectStatus = content.kind.removeprefix("effect.")  # type: ignore[assignment]
    return JournaledEffect(effect.intent, status, content.reason, effect.attempts, effect.retry_at)


def _derive_entry_id(intent: EffectIntent, status: EffectStatus, attempts: int) -> str:
    """Return the id of an entry that each attempt has once; with 0 attempts, of one that the effect has once.

    An effect of a renamed machine has its entries under each name.
    """
    number = [str(attempts)] if attempts else []
    return derive_id(intent.effect, status, intent.node, *number)


def make_carried_entries(
    entries: Iterable[LedgerEntry], effects: Collection[str], rename: LedgerEntry
) -> list[LedgerEntry]:
    """Return the entries of open `effects` under a machine's new name, which the entry `rename` gives it."""
    carried = list[LedgerEntry]()
    for entry in entries:
        content = decode_entry(entry)
        if (
            isinstance(content, EffectIntentEntry | EffectTriedEntry | EffectProgressEntry)
            and content.effect in effects
        ):
            if isinstance(content, EffectIntentEntry):
                content = replace(content, named_by=rename.id)
            carried.append(content.make_entry(derive_id(entry.id, rename.id), entry.at, rename.node))
    return carried
