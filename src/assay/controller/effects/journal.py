"""The effects' lines in the ledger: one intent, then done, then exactly one of verified and failed.

`effect.unknown` says that the world could not be read; it ends nothing, and only a later reading leaves it.
`effect.tried` says that an attempt came to nothing, and from when the next may be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.actions.action import Facts, Intent, Verification
from assay.model.entry import Entry, derived_id

KINDS = ("effect.intent", "effect.done", "effect.tried", "effect.verified", "effect.failed", "effect.unknown")
Standing = Literal["intent", "done", "tried", "verified", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect as the ledger tells it: its intent, how far it got, and the last reason.

    `tried` counts the attempts that came to nothing; before `again_at` (ISO 8601) no other is made.
    """

    intent: Intent
    standing: Standing
    reason: str = ""
    tried: int = 0
    again_at: str = ""

    @property
    def ended(self) -> bool:
        """Whether a reading of the world has settled it."""
        return self.standing in ("verified", "failed")


def effect_id(decision: str, action: str) -> str:
    """Return the id of the effect `action` of a decision."""
    return derived_id(decision, action)


def intent_entry(intent: Intent, at: str, before: Facts, by: Mapping[str, Any]) -> Entry:
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
    return Entry(intent.effect, at, "effect.intent", intent.node, body)


def done_entry(intent: Intent, at: str, reason: str, tried: int = 0) -> Entry:
    """Return the line that says that the doing is over, well or (with a reason) not. It proves nothing."""
    body = {"effect": intent.effect, "action": intent.action, "reason": reason, "facts": {}}
    return Entry(_id(intent, "done", tried), at, "effect.done", intent.node, body)


def tried_entry(intent: Intent, at: str, number: int, reason: str, again_at: str) -> Entry:
    """Return the line that says that attempt `number` came to nothing, and when the next may be made."""
    body = {"effect": intent.effect, "action": intent.action, "attempt": number, "reason": reason, "again_at": again_at}
    return Entry(_id(intent, "tried", number), at, "effect.tried", intent.node, body)


def ending(verification: Verification) -> Standing:
    """Return what a reading of the world makes of an effect."""
    if verification.done is None:
        return "unknown"
    return "verified" if verification.done else "failed"


def ending_entry(intent: Intent, at: str, verification: Verification, tried: int = 0) -> Entry:
    """Return the line that a reading of the world earns. Appending it again changes nothing."""
    standing = ending(verification)
    body = {
        "effect": intent.effect,
        "action": intent.action,
        "reason": verification.reason,
        "facts": verification.facts,
    }
    ident = _id(intent, standing, tried if standing == "unknown" else 0)
    return Entry(ident, at, f"effect.{standing}", intent.node, body)


def effects_in(entries: Iterable[Entry]) -> dict[str, Effect]:
    """Return every effect of these entries by id, in the order of their intents."""
    found: dict[str, Effect] = {}
    for entry in entries:
        if entry.kind == "effect.intent":
            found[entry.body["effect"]] = Effect(_intent(entry), "intent")
        elif entry.kind in KINDS and (effect := found.get(entry.body["effect"])) and not effect.ended:
            found[entry.body["effect"]] = _further(effect, entry)
    return found


def _further(effect: Effect, entry: Entry) -> Effect:
    standing: Standing = entry.kind.removeprefix("effect.")  # type: ignore[assignment]
    body = entry.body
    tried, again_at = body.get("attempt", effect.tried), body.get("again_at", effect.again_at)
    return Effect(effect.intent, standing, body["reason"], tried, again_at)


def _intent(entry: Entry) -> Intent:
    body = entry.body
    return Intent(
        effect=body["effect"],
        action=body["action"],
        node=entry.node,
        decision=body["decision"],
        reason=body.get("reason", ""),
        at=entry.at,
        before=body["before"],
        params=body["params"],
    )


def _id(intent: Intent, standing: Standing, tried: int) -> str:
    """Return the id of a line that each attempt may have once; without a number, of one that an effect has once."""
    return derived_id(intent.effect, standing, *([str(tried)] if tried else []))
