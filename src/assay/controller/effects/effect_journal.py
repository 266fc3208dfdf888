"""The ledger entries of an effect: an intent, then done, then exactly one of verified and failed.

`effect.unknown` records that the world could not be read; only a later reading ends such an effect. `effect.tried`
records that an attempt achieved nothing, and when the next one may start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.actions.action import EffectFacts, EffectIntent, EffectVerification
from assay.model.ledger_entry import LedgerEntry, derive_id

EFFECT_KINDS = ("effect.intent", "effect.done", "effect.tried", "effect.verified", "effect.failed", "effect.unknown")
EffectStatus = Literal["intent", "done", "tried", "verified", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
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


def derive_effect_id(decision: str, action: str) -> str:
    """Return the id of the effect `action` of a decision."""
    return derive_id(decision, action)


def make_intent_entry(intent: EffectIntent, at: str, before: EffectFacts, by: Mapping[str, Any]) -> LedgerEntry:
    """Return the entry that is appended before anything is done; `by` is the process, and its deadline."""
    body = {
        "effect": intent.effect,
        "action": intent.action,
        "decision": intent.decision,
        "reason": intent.reason,
        "before": before,
        "params": dict(intent.params),
        "by": dict(by),
    }
    return LedgerEntry(intent.effect, at, "effect.intent", intent.node, body)


def make_done_entry(intent: EffectIntent, at: str, error: str, attempts: int = 0) -> LedgerEntry:
    """Return the entry for an attempt that is over, with its error or "". It proves nothing."""
    body = {"effect": intent.effect, "action": intent.action, "reason": error, "facts": {}}
    return LedgerEntry(_derive_entry_id(intent, "done", attempts), at, "effect.done", intent.node, body)


def make_retry_entry(intent: EffectIntent, at: str, attempt: int, reason: str, retry_at: str) -> LedgerEntry:
    """Return the entry for attempt number `attempt`, which achieved nothing, and when the next may start."""
    body = {
        "effect": intent.effect,
        "action": intent.action,
        "attempt": attempt,
        "reason": reason,
        "again_at": retry_at,
    }
    return LedgerEntry(_derive_entry_id(intent, "tried", attempt), at, "effect.tried", intent.node, body)


def classify_verification(verification: EffectVerification) -> EffectStatus:
    """Return the status of an effect after a reading of the world."""
    if verification.done is None:
        return "unknown"
    return "verified" if verification.done else "failed"


def make_end_entry(intent: EffectIntent, at: str, verification: EffectVerification, attempts: int = 0) -> LedgerEntry:
    """Return the entry for a reading of the world. Its id is the same each time, so a second append adds nothing."""
    status = classify_verification(verification)
    body = {
        "effect": intent.effect,
        "action": intent.action,
        "reason": verification.reason,
        "facts": verification.facts,
    }
    ident = _derive_entry_id(intent, status, attempts if status == "unknown" else 0)
    return LedgerEntry(ident, at, f"effect.{status}", intent.node, body)


def parse_effects(entries: Iterable[LedgerEntry]) -> dict[str, JournaledEffect]:
    """Return every effect of these entries by id, in the order of their intents."""
    effects: dict[str, JournaledEffect] = {}
    for entry in entries:
        body = entry.body
        if entry.kind == "effect.intent":
            intent = EffectIntent(
                effect=body["effect"],
                action=body["action"],
                node=entry.node,
                decision=body["decision"],
                reason=body.get("reason", ""),
                at=entry.at,
                before=body["before"],
                params=body["params"],
            )
            effects[intent.effect] = JournaledEffect(intent, "intent")
        elif entry.kind in EFFECT_KINDS and (effect := effects.get(body["effect"])) and not effect.has_ended:
            status: EffectStatus = entry.kind.removeprefix("effect.")  # type: ignore[assignment]
            attempts, retry_at = body.get("attempt", effect.attempts), body.get("again_at", effect.retry_at)
            effects[body["effect"]] = JournaledEffect(effect.intent, status, body["reason"], attempts, retry_at)
    return effects


def _derive_entry_id(intent: EffectIntent, status: EffectStatus, attempts: int) -> str:
    """Return the id of an entry that each attempt has once; with 0 attempts, of one that the effect has once."""
    return derive_id(intent.effect, status, *([str(attempts)] if attempts else []))
