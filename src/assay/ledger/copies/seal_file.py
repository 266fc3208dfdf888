"""Seals in a file, one JSON document a line: an anchor on another disk, and the register of all seals."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from assay.ledger.copies.anchor import make_no_seal_error
from assay.ledger.copies.seal import StoredSeal, parse_stored_seals
from assay.model.errors import AssayError

REGISTER_NAME = "seals.jsonl"
"""The register's file in `.assay/`: which anchors were used, and the stamps of time-stamp authorities."""


@dataclass(frozen=True, slots=True)
class FileAnchor:
    """A file of seals, best one that can only grow: `chattr +a`, or on a machine that others administer."""

    name: str
    path: Path
    register: Path

    def read(self) -> list[StoredSeal]:
        """Return the seals of the file. Raises AssayError where it is missing, empty or damaged."""
        kept = read_seal_file(self.path)
        if not kept:
            what = "this file holds no seal" if self.path.exists() else "this file is missing"
            raise make_no_seal_error(self.name, what, self.register)
        return kept

    def prove(self, seal: StoredSeal) -> StoredSeal:
        """Return the seal: the file is the proof."""
        return seal

    def store(self, seal: StoredSeal) -> StoredSeal:
        """Append one line."""
        append_to_seal_file(self.path, seal)
        return seal


def read_seal_file(path: Path) -> list[StoredSeal]:
    """Return the seals of a file, none where there is no file. Raises AssayError."""
    try:
        return parse_stored_seals(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise AssayError(f"the seals cannot be read: {why}", where=str(path), fix="check its owner and mode") from error


def append_to_seal_file(path: Path, seal: StoredSeal) -> None:
    """Append one line, and wait until it is on the disk; a line that cannot be written whole leaves nothing behind."""
    try:
        with path.open("ab", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            try:
                line = f"{seal.to_line()}\n".encode()
                if file.write(line) < len(line):
                    raise OSError(28, "No space left on device")
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
    except OSError as error:
        fix = "its folder must exist and be writable, and its disk must have room"
        raise AssayError(f"the seal cannot be written: {error.strerror}", where=str(path), fix=fix) from error
