"""The shapes of what `assay ledger` prints with `--format json`."""

from __future__ import annotations

from assay.ledger.copies.archive import CheckedArchive
from assay.model.facts import fact, shown


@fact
class LedgerChainEnd:
    """The end of one of the ledger's hash chains."""

    count: int
    """How many rows the chain has."""
    hash: str
    """The hash of the last row; "" for an empty chain."""


@fact
class AfterSeal:
    """What came after a seal."""

    entry: int
    """How many entries."""
    run: int
    """How many runs."""


@fact
class ProvenSeal:
    """A seal that an anchor keeps, and that the ledger fits."""

    seal: str
    """The seal."""
    at: str
    """When it was made: ISO 8601 UTC."""
    who: str
    """Who made it."""
    anchor: str
    """The anchor that keeps it."""
    stamp: str | None = shown(omit=True, default=None)
    """The answer of a time-stamp authority, in base64; missing without one."""


@fact
class AnchorProof:
    """What one anchor says of the ledger."""

    anchor: str
    """The anchor."""
    seals: int
    """How many seals it keeps."""
    proven: ProvenSeal | None
    """The newest seal that the ledger fits; null if there is none."""
    after: AfterSeal
    """What came after that seal, which the anchor does not prove; all of the ledger without one."""
    problems: list[str]
    """Where the ledger is not the sealed one, and why the anchor cannot be read."""


@fact
class LedgerVerifyAnswer:
    """Whether the ledger is unchanged, and what proves it."""

    whole: bool
    """Whether nothing is wrong; else the exit code is 1."""
    problems: list[str]
    """What was changed, removed, reordered or inserted, and the anchors that cannot be read."""
    entry: LedgerChainEnd
    """The chain of entries."""
    run: LedgerChainEnd
    """The chain of runs."""
    seal: str
    """The seal of the ledger as it is now."""
    archives: tuple[CheckedArchive, ...]
    """The archives of old entries."""
    anchors: list[AnchorProof]
    """The anchors."""


@fact
class SealedIn:
    """An anchor, and whether it keeps the seal now."""

    anchor: str
    """The anchor."""
    sealed: bool
    """Whether it keeps the seal."""
    refusal: str
    """Why not; "" if it does."""


@fact
class LedgerSealAnswer:
    """The seal of the ledger, and the anchors that keep it."""

    seal: str
    """The seal."""
    problems: list[str]
    """Why the ledger is broken, so that nothing was sealed; empty if it is not."""
    anchors: list[SealedIn]
    """The anchors."""


@fact
class LedgerCopyAnswer:
    """A copy of the ledger that was written now."""

    file: str
    """The file of the copy that was written or read."""
    entries: int
    """How many entries it has."""
    runs: int
    """How many runs it has."""
    seal: str
    """The seal of the copied ledger."""
    schema: int
    """The version of the schema of its tables."""


@fact
class LedgerArchiveAnswer:
    """The old entries that were moved into an archive, or that would be."""

    moved: bool
    """Whether they were moved; false without --yes, and if there was none to move."""
    file: str
    """The archive."""
    before: str
    """Entries before this time were looked at: ISO 8601 with an offset."""
    entries: int
    """How many entries."""
    kinds: dict[str, int]
    """How many entries of each kind."""
    bytes: int
    """The size of their bodies in bytes."""
    until: str
    """The time of the last of them: ISO 8601 UTC; "" if there is none."""


@fact
class BrokenLedgerAnswer:
    """Why nothing was done: the ledger is broken."""

    problems: list[str]
    """What was changed, removed, reordered or inserted."""
