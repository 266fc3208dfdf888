"""The effects' lines in the ledger: one intent, then done, then exactly one of verified and failed.

`effect.unknown` says that the world could not be read; it ends nothing, and only a later reading leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from assay.actions.action import Facts, Intent, Verification
from assay.model.entry import Entry, derived_id

KINDS = ("effect.intent", "effect.done", "effect.verified", "effect.failed", "effect.unknown")
Standing = Literal["intent", "done", "verified", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect as the ledger tells it: its intent, how far it got, and the last reason."""

    intent: Intent
    standing: Standing
    reason: str = ""

    @property
    def ended(self) -> bool:
        """Whether a reading of the world has settled it."""
        return self.standing in ("verified", "failed")


def effect_id(decision: str, action: str) -> str:
    """Return the id of the effect `action` of a decision."""
    return derived_id(decision, action)


def intent_entry(intent: Intent, at: str, before: Facts) -> Entry:
    """Return the line that is written before anything is done."""
    body = {
        "effect": intent.effect,
        "action": intent.action,
        "decision": intent.decision,
        "reason": intent.reason,
        "before": before,
        "params": dict(intent.params),
    }
    return Entry(intent.effect, at, "effect.intent", intent.node, body)


def done_entry(intent: Intent, at: str, reason: str) -> Entry:
    """Return the line that says that the doing is over, well or (with a reason) not. It proves nothing."""
    body = {"effect": intent.effect, "action": intent.action, "reason": reason, "facts": {}}
    return Entry(derived_id(intent.effect, "done"), at, "effect.done", intent.node, body)


def ending(verification: Verification) -> Standing:
    """Return what a reading of the world makes of an effect."""
    if verification.done is None:
        return "unknown"
    return "verified" if verification.done else "failed"


def ending_entry(intent: Intent, at: str, verification: Verification) -> Entry:
    """Return the line that a reading of the world earns. Appending it again changes nothing."""
    standing = ending(verification)
    body = {
        "effect": intent.effect,
        "action": intent.action,
        "reason": verification.reason,
        "facts": verification.facts,
    }
    return Entry(derived_id(intent.effect, standing), at, f"effect.{standing}", intent.node, body)


def effects_in(entries: Iterable[Entry]) -> dict[str, Effect]:
    """Return every effect of these entries by id, in the order of their intents."""
    found: dict[str, Effect] = {}
    for entry in entries:
        if entry.kind == "effect.intent":
            found[entry.body["effect"]] = Effect(_intent(entry), "intent")
        elif entry.kind in KINDS and (effect := found.get(entry.body["effect"])) and not effect.ended:
            standing: Standing = entry.kind.removeprefix("effect.")  # type: ignore[assignment]
            found[entry.body["effect"]] = Effect(effect.intent, standing, entry.body["reason"])
    return found


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
