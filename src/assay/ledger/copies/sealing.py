"""Seals a ledger in its anchors, and keeps the register of the anchors that were used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from assay.ledger.copies.anchor import Anchor
from assay.ledger.copies.seal import StoredSeal, make_seal
from assay.ledger.copies.seal_comparison import check_anchor, format_contradictions
from assay.ledger.copies.seal_file import append_to_seal_file, read_seal_file
from assay.ledger.copies.time_stamp import TimeStampAnchor
from assay.ledger.store import Ledger
from assay.model.errors import AssayError


@dataclass(frozen=True, slots=True)
class SealedAnchor:
    """How sealing in one anchor ended: `refusal` is "" if the anchor keeps the seal, else what to tell people."""

    anchor: str
    refusal: str = ""
    is_contradicted: bool = False


def list_registered_anchors(register: Path) -> list[str]:
    """Return the names of the anchors that were used, in the order of their first use. Raises AssayError."""
    return list(dict.fromkeys(seal.anchor for seal in read_seal_file(register) if seal.anchor))


def seal_ledger(ledger: Ledger, anchors: Iterable[Anchor], register: Path, at: str, who: str) -> list[SealedAnchor]:
    """Seal a ledger as it is now in each anchor, and note in the register that it was.

    An anchor whose older seals contradict the ledger gets none, nor does one that was used before and is lost. What
    fails in one anchor does not keep the others from their seal. Raises AssayError if the register is unreadable.
    """
    used = list_registered_anchors(register)
    seal = StoredSeal(make_seal(ledger.chain_ends()), at, who)
    return [_seal_in_anchor(ledger, anchor, seal, register, anchor.name in used) for anchor in anchors]


def _seal_in_anchor(ledger: Ledger, anchor: Anchor, seal: StoredSeal, register: Path, is_used: bool) -> SealedAnchor:
    report = check_anchor(ledger, anchor)
    if report.contradictions:
        return SealedAnchor(anchor.name, format_contradictions(report), is_contradicted=True)
    if report.unreadable and is_used:
        return SealedAnchor(anchor.name, report.unreadable, is_contradicted=True)
    try:
        register.parent.mkdir(parents=True, exist_ok=True)
        kept = anchor.store(seal)
        stamp = kept.stamp if isinstance(anchor, TimeStampAnchor) else ""
        append_to_seal_file(register, replace(kept, stamp=stamp, anchor=anchor.name))
    except AssayError as error:
        return SealedAnchor(anchor.name, str(error))
    except OSError as error:
        return SealedAnchor(anchor.name, f"{register.parent}: the register cannot be written: {error.strerror}")
    return SealedAnchor(anchor.name)
