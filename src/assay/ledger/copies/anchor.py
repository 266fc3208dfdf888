"""What an anchor of a ledger is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from assay.ledger.copies.seal import StoredSeal
from assay.model.errors import AssayError

LOST_FIX = "bring it back; if it was given up, name the other anchors with --anchor, and its lines leave {register}"


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


def make_no_seal_error(name: str, what: str, register: Path) -> AssayError:
    """Return that an anchor does not give its seals back."""
    return AssayError(what, where=name, fix=LOST_FIX.format(register=register))
