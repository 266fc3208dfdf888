"""Compares a ledger with seals: where the two contradict each other, and up to where the seals prove the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.ledger.copies.anchor import Anchor
from assay.ledger.copies.seal import CHAINS, LedgerSeal, StoredSeal
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.timestamps import format_second

MAX_CONTRADICTIONS = 3
"""Contradictions of one anchor that are shown; who sees so many knows enough."""


@dataclass(frozen=True, slots=True)
class AnchorReport:
    """What one anchor says of a ledger.

    `proven` is the newest seal that fits, None if none does. `contradictions` say where the ledger is not the sealed
    one. `unreadable` is why the anchor gives no seals back, "" if it does.
    """

    anchor: str
    proven: StoredSeal | None = None
    seals: int = 0
    contradictions: tuple[str, ...] = ()
    unreadable: str = ""


def find_contradictions(ledger: Ledger, seal: LedgerSeal) -> list[str]:
    """Return where a ledger is not the one that was sealed. Reads two rows."""
    found = []
    for chain, end in zip(CHAINS, (seal.entry, seal.run), strict=True):
        if not end or not end.seq:
            continue
        present = ledger.hash_of(end.seq, chain)
        if present is None:
            found.append(f"{chain} {end.seq}, which was sealed, is missing")
        elif not present.startswith(end.hash):
            found.append(f"{chain} {end.seq} is not the sealed one")
    return found


def check_anchor(ledger: Ledger, anchor: Anchor) -> AnchorReport:
    """Compare a ledger with every seal that an anchor keeps.

    Of the seals that fit, only the furthest one has to be proven: the hash chain then proves the others.
    """
    try:
        kept = anchor.read()
        wrong = [(seal, found) for seal in kept if (found := find_contradictions(ledger, seal.seal))]
        contradicted = {id(seal) for seal, _ in wrong}
        fitting = [seal for seal in kept if id(seal) not in contradicted]
        proven = anchor.prove(max(reversed(fitting), key=lambda one: _extent(one.seal))) if fitting else None
        lines = [line for seal, found in wrong[:MAX_CONTRADICTIONS] for line in _describe(anchor.prove(seal), found)]
    except AssayError as error:
        return AnchorReport(anchor.name, unreadable=str(error))
    return AnchorReport(anchor.name, proven, len(kept), tuple(lines[:MAX_CONTRADICTIONS]))


def _describe(seal: StoredSeal, contradictions: Iterable[str]) -> list[str]:
    return [f"{line} (sealed {format_second(seal.at)} by {seal.who})" for line in contradictions]


def format_contradictions(report: AnchorReport) -> str:
    """Return in one line where a ledger is not the one that an anchor knows, and what of it is proven."""
    upto = f"; proven up to {format_extent(report.proven)}" if report.proven else "; nothing of it is proven"
    return f"{report.anchor}: {', '.join(report.contradictions)}{upto}"


def format_extent(kept: StoredSeal) -> str:
    """Return how far a seal reaches, in words."""
    entry, run = kept.seal.entry, kept.seal.run
    reach = f"entry {entry.seq:,} and run {run.seq:,}" if run else f"entry {entry.seq:,} (runs are not covered)"
    return f"{reach}, sealed {format_second(kept.at)}"


def count_unproven(seal: LedgerSeal, ends: LedgerSeal) -> tuple[int, int]:
    """Return how many entries and runs came after a seal; all runs after one that does not cover them."""
    runs = (ends.run.seq if ends.run else 0) - (seal.run.seq if seal.run else 0)
    return ends.entry.seq - seal.entry.seq, runs


def _extent(seal: LedgerSeal) -> tuple[int, int]:
    return seal.entry.seq, seal.run.seq if seal.run else 0
