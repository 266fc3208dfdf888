"""A person's order: who gives it and why, and what it makes of one node."""

from __future__ import annotations

from dataclasses import dataclass

from assay.model.ledger_entry import LedgerEntry


@dataclass(frozen=True, slots=True)
class OperatorOrder:
    """The result of an order for one node: a message, and the ledger entry to write (None: nothing to write)."""

    node: str
    message: str
    entry: LedgerEntry | None = None


@dataclass(frozen=True, slots=True)
class OperatorIdentity:
    """Who gives an order, why, and when (ISO 8601 UTC)."""

    who: str
    reason: str
    at: str


def strip_to_one_line(text: str) -> str:
    """Return typed text as one line, without control characters."""
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())
