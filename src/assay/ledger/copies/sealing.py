"""Seals a ledger in its anchors, and compares it with their seals: where they contradict it, and how far they prove it.

The register names each anchor that was used, so that one that lost its seals is missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from assay.ledger.copies.anchors import TimeStampAnchor, append_to_seal_file, read_seal_file
from assay.ledger.copies.seal import CHAINS, Anchor, LedgerSeal, StoredSeal, make_seal
from assay.ledger.hash_chain import REMOVING_KINDS
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.timestamps import format_second

MAX_CONTRADICTIONS = 3
"""Contradictions of one anchor that are shown; who sees so many knows enough."""


@fact
class AnchorReport:
    """What one anchor says of the ledger."""

    anchor: str
    """The anchor."""
    proven: StoredSeal | None = None
    """The newest seal that the ledger fits; null if there is none."""
    seals: int = 0
    """How many seals it keeps."""
    contradictions: tuple[str, ...] = ()
    """Where the ledger is not the sealed one."""
    unreadable: str = ""
    """Why the anchor gives no seals back; "" if it does."""


def find_contradictions(ledger: Ledger, seal: LedgerSeal) -> list[str]:
    """Return where a ledger is not the one that was sealed. Reads two rows."""
    contradictions = []
    for chain, end in zip(CHAINS, (seal.entry, seal.run), strict=True):
        if not end.seq:
            continue
        present = ledger.hash_of(end.seq, chain)
        if present is None:
            contradictions.append(f"{chain} {end.seq}, which was sealed, is missing")
        elif not present.startswith(end.hash):
            contradictions.append(f"{chain} {end.seq} is not the sealed one")
    return contradictions


def find_unsealed_removals(ledger: Ledger, fitting: Iterable[LedgerSeal], accepted: Collection[int] = ()) -> list[str]:
    """Return the entries that say that lines were deleted or archived, and that none of the fitting seals covers.

    Nothing proves what such an entry left of lines that were sealed before it. A person may accept it by its number.
    """
    furthest = max((seal.entry.seq for seal in fitting), default=None)
    if furthest is None:
        return []
    problem = (
        "entry {0.seq} ({0.kind}, {0.at}) says that sealed lines are here no more, and no seal covers it: nothing "
        "proves what it left\n→ if you made it: assay ledger seal --accept {0.seq}"
    )
    removals = ledger.entries(kinds=REMOVING_KINDS, after=furthest)
    return [problem.format(removal) for removal in removals if removal.seq not in accepted]


def check_anchor(ledger: Ledger, anchor: Anchor) -> AnchorReport:
    """Compare a ledger with every seal that an anchor keeps.

    Of the seals that fit, only the furthest one has to be proven: the hash chain then proves the others.
    """
    try:
        kept = anchor.read()
        wrong = [(seal, lines) for seal in kept if (lines := find_contradictions(ledger, seal.seal))]
        contradicted = {id(seal) for seal, _ in wrong}
        fitting = [seal for seal in kept if id(seal) not in contradicted]
        fitting.sort(key=lambda kept: (kept.seal.entry.seq, kept.seal.run.seq))
        proven = anchor.prove(fitting[-1]) if fitting else None
        contradictions = []
        for seal, lines in wrong[:MAX_CONTRADICTIONS]:
            proved = anchor.prove(seal)
            contradictions += [f"{line} (sealed {format_second(proved.at)} by {proved.who})" for line in lines]
    except AssayError as error:
        return AnchorReport(anchor.name, unreadable=str(error))
    return AnchorReport(anchor.name, proven, len(kept), tuple(contradictions[:MAX_CONTRADICTIONS]))


def format_contradictions(report: AnchorReport) -> str:
    """Return in one line where a ledger is not the one that an anchor knows, and what of it is proven."""
    upto = f"; proven up to {format_extent(report.proven)}" if report.proven else "; nothing of it is proven"
    return f"{report.anchor}: {', '.join(report.contradictions)}{upto}"


def format_extent(kept: StoredSeal) -> str:
    """Return how far a seal reaches, in words."""
    entry, run = kept.seal.entry, kept.seal.run
    return f"entry {entry.seq:,} and run {run.seq:,}, sealed {format_second(kept.at)}"


def count_unproven(seal: LedgerSeal, ends: LedgerSeal) -> tuple[int, int]:
    """Return how many entries and runs came after a seal."""
    return ends.entry.seq - seal.entry.seq, ends.run.seq - seal.run.seq


@fact
class SealedAnchor:
    """How sealing in one anchor ended."""

    anchor: str
    """The anchor."""
    refusal: str = ""
    """Why it does not keep the seal, for people; "" if it does."""
    is_contradicted: bool = False
    """Whether its older seals contradict the ledger, or are lost."""


def list_registered_anchors(register: Path) -> list[str]:
    """Return the names of the anchors that were used, in the order of their first use. Raises AssayError."""
    return list(dict.fromkeys(seal.anchor for seal in read_seal_file(register) if seal.anchor))


def seal_ledger(
    ledger: Ledger, anchors: Sequence[Anchor], register: Path, at: str, who: str, accepted: Collection[int] = ()
) -> list[SealedAnchor]:
    """Seal a ledger as it is now in each anchor, and note in the register that it was.

    An anchor whose older seals contradict the ledger gets none, nor does one that was used before and is lost. What
    fails in one anchor does not keep the others from their seal. None is sealed where the ledger says of sealed lines
    that they are here no more, but for the `accepted` entries. Raises AssayError if the register is unreadable.
    """
    used = list_registered_anchors(register)
    seal = StoredSeal(make_seal(ledger.chain_ends()), at, who)
    reports = [check_anchor(ledger, anchor) for anchor in anchors]
    fitting = [report.proven.seal for report in reports if report.proven]
    if unsealed := find_unsealed_removals(ledger, fitting, accepted):
        return [SealedAnchor(anchor.name, "\n".join(unsealed), is_contradicted=True) for anchor in anchors]
    return [
        _seal_in_anchor(report, anchor, seal, register, anchor.name in used)
        for anchor, report in zip(anchors, reports, strict=True)
    ]


def _seal_in_anchor(
    report: AnchorReport, anchor: Anchor, seal: StoredSeal, register: Path, is_used: bool
) -> SealedAnchor:
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
