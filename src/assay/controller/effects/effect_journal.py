"""The effects' lines in the ledger: one intent, then done, then exactly one of verified and failed.

`effect.unknown` says that the world could not be read; it ends nothing, and only a later reading leaves it.
`effect.tried` says that an attempt came to nothing, and from when the next may be made.
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
    """One effect as the ledger tells it: its intent, how far it got, and the last reason.

    `tried` counts the attempts that came to nothing; before `again_at` (ISO 8601) no other is made.
    """

    intent: EffectIntent
    status: EffectStatus
    reason: str = ""
    attempts: int = 0
    retry_at: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether a reading of the world has settled it."""
        return self.status in ("verified", "failed")


def derive_effect_id(decision: str, action: str) -> str:
    """Return the id of the effect `action` of a decision."""
    return derive_id(decision, action)


def make_intent_entry(intent: EffectIntent, at: str, before: EffectFacts, by: Mapping[str, Any]) -> LedgerEntry:
    """Return the line that is written before anything is done; `by` says who does it, and until when at the latest."""
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


def make_done_entry(intent: EffectIntent, at: str, reason: str, tried: int = 0) -> LedgerEntry:
    """Return the line that says that the doing is over, well or (with a reason) not. It proves nothing."""
    body = {"effect": intent.effect, "action": intent.action, "reason": reason, "facts": {}}
    return LedgerEntry(_entry_id(intent, "done", tried), at, "effect.done", intent.node, body)


def make_retry_entry(intent: EffectIntent, at: str, number: int, reason: str, again_at: str) -> LedgerEntry:
    """Return the line that says that attempt `number` came to nothing, and when the next may be made."""
    body = {"effect": intent.effect, "action": intent.action, "attempt": number, "reason": reason, "again_at": again_at}
    return LedgerEntry(_entry_id(intent, "tried", number), at, "effect.tried", intent.node, body)


def classify_verification(verification: EffectVerification) -> EffectStatus:
    """Return what a reading of the world makes of an effect."""
    if verification.done is None:
        return "unknown"
    return "verified" if verification.done else "failed"


def make_end_entry(intent: EffectIntent, at: str, verification: EffectVerification, tried: int = 0) -> LedgerEntry:
    """Return the line that a reading of the world earns. Appending it again changes nothing."""
    standing = classify_verification(verification)
    body = {
        "effect": intent.effect,
        "action": intent.action,
        "reason": verification.reason,
        "facts": verification.facts,
    }
    ident = _entry_id(intent, standing, tried if standing == "unknown" else 0)
    return LedgerEntry(ident, at, f"effect.{standing}", intent.node, body)


def parse_effects(entries: Iterable[LedgerEntry]) -> dict[str, JournaledEffect]:
    """Return every effect of these entries by id, in the order of their intents."""
    found: dict[str, JournaledEffect] = {}
    for entry in entries:
        if entry.kind == "effect.intent":
            found[entry.body["effect"]] = JournaledEffect(_parse_intent(entry), "intent")
        elif entry.kind in EFFECT_KINDS and (effect := found.get(entry.body["effect"])) and not effect.has_ended:
            found[entry.body["effect"]] = _advance(effect, entry)
    return found


def _advance(effect: JournaledEffect, entry: LedgerEntry) -> JournaledEffect:
    standing: EffectStatus = entry.kind.removeprefix("effect.")  # type: ignore[assignment]
    body = entry.body
    tried, again_at = body.get("attempt", effect.attempts), body.get("again_at", effect.retry_at)
    return JournaledEffect(effect.intent, standing, body["reason"], tried, again_at)


def _parse_intent(entry: LedgerEntry) -> EffectIntent:
    body = entry.body
    return EffectIntent(
        effect=body["effect"],
        action=body["action"],
        node=entry.node,
        decision=body["decision"],
        reason=body.get("reason", ""),
        at=entry.at,
        before=body["before"],
        params=body["params"],
    )


def _entry_id(intent: EffectIntent, standing: EffectStatus, tried: int) -> str:
    """Return the id of a line that each attempt may have once; without a number, of one that an effect has once."""
    return derive_id(intent.effect, standing, *([str(tried)] if tried else []))
