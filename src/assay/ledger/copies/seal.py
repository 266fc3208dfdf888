"""Seals: how both hash chains of a ledger end, as one word to keep outside of the ledger, in an anchor.

Whoever makes a chain anew as a whole leaves no trace in the ledger. A seal of before shows it: the line that it names
is missing, or has another hash. The hash of a run covers its outcomes, their measurements and their texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from assay.ledger.hash_chain import ChainName
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.timestamps import parse_time

CHAINS: tuple[ChainName, ChainName] = ("entry", "run")
MIN_HASH_CHARS = 12
HASH_OF_NOTHING = "0" * 64
SEAL_FIX = "use SEQ:HASH,SEQ:HASH (entries, runs) as `assay ledger verify` printed it"
LOST_FIX = "bring it back; if it was given up, name the other anchors with --anchor, and its lines leave {register}"


@fact
class ChainEnd:
    """The last line of a chain."""

    seq: int
    """Its number; 0 where there is none."""
    hash: str
    """Its hash in hexadecimal."""


@fact
class LedgerSeal:
    """The ends of both chains of a ledger."""

    entry: ChainEnd
    """The end of the chain of entries."""
    run: ChainEnd
    """The end of the chain of runs."""

    def __str__(self) -> str:
        return ",".join(f"{end.seq}:{end.hash}" for end in (self.entry, self.run))


@fact
class StoredSeal:
    """A seal as an anchor stores it."""

    seal: LedgerSeal
    """The seal."""
    at: str
    """When it was made: ISO 8601 UTC."""
    who: str
    """Who made it."""
    stamp: str = ""
    """The answer of a time-stamp authority, in base64; "" without one."""
    anchor: str = ""
    """The anchor; "" if nothing names it."""

    def to_body(self) -> dict[str, str]:
        """Return it as JSON data."""
        body = {"seal": str(self.seal), "at": self.at, "who": self.who, "stamp": self.stamp, "anchor": self.anchor}
        return {name: value for name, value in body.items() if value}

    def to_line(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(self.to_body(), ensure_ascii=False)


def parse_stored_seal(body: object) -> StoredSeal:
    """Return the stored seal of JSON data. Raises AssayError if it is none."""
    try:
        fields: Mapping[str, Any] = dict(body)  # type: ignore[call-overload]  # raises where it is no mapping
        at, who = str(fields["at"]), str(fields["who"])
        parse_time(at)
        return StoredSeal(
            parse_seal(str(fields["seal"])), at, who, str(fields.get("stamp", "")), str(fields.get("anchor", ""))
        )
    except (TypeError, ValueError, KeyError, AssayError):
        raise AssayError("this is not a stored seal: it names no seal, no time or no person") from None


def parse_stored_seals(text: str, where: str) -> list[StoredSeal]:
    """Return the stored seals of a text, one JSON document a line. Raises AssayError with the line that is none."""
    kept = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            kept.append(parse_stored_seal(json.loads(line)))
        except (ValueError, AssayError):
            fix = "somebody wrote to it, or its disk is damaged: find out who, and bring back the line from a copy"
            raise AssayError("this line is not a stored seal", where=f"{where}:{number}", fix=fix) from None
    return kept


def parse_seal(text: str) -> LedgerSeal:
    """Return the seal that `assay ledger verify` printed. Raises AssayError."""
    ends = [end for part in text.split(",") if (end := _parse_end(part))]
    if text.count(",") != 1 or len(ends) != len(CHAINS):
        raise AssayError(f"{text!r} is not a seal", fix=SEAL_FIX)
    return LedgerSeal(*ends)


def _parse_end(text: str) -> ChainEnd | None:
    seq, _, hash_ = text.partition(":")
    if not (seq.isascii() and seq.isdecimal() and len(seq) < 19) or len(hash_) < MIN_HASH_CHARS:
        return None
    return ChainEnd(int(seq), hash_)


def make_seal(ends: Mapping[str, tuple[int, str]]) -> LedgerSeal:
    """Return the seal of a ledger whose `chain_ends()` are `ends`."""
    entry, run = (ChainEnd(ends[chain][0], ends[chain][1] or HASH_OF_NOTHING) for chain in CHAINS)
    return LedgerSeal(entry, run)


class AnchoredFleet(NamedTuple):
    """A fleet whose ledger is anchored: its folder, its ledger's location, and the register of its seals."""

    root: Path
    ledger: Path | str
    register: Path


class Anchor(Protocol):
    """A place outside of the ledger that keeps its seals. `name` is as people write it and holds no secret."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def read(self) -> list[StoredSeal]:
        """Return every seal that is kept here, oldest first. Raises AssayError where none is, or one is unreadable."""

    def prove(self, seal: StoredSeal) -> StoredSeal:
        """Return a seal that `read` gave, with the time that is proven. Raises AssayError if it is forged."""

    def store(self, seal: StoredSeal) -> StoredSeal:
        """Keep one seal more, for good, and return it as the register is to keep it. Raises AssayError."""


def make_no_seal_error(name: str, problem: str, register: Path) -> AssayError:
    """Return that an anchor does not give its seals back."""
    return AssayError(problem, where=name, fix=LOST_FIX.format(register=register))
