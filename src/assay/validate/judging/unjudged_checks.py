"""Why checks of a shard have no outcome: they crashed their process, or their module cannot be imported.

The reasons are in the shard's own file. A fresh process does not try these checks again, and the complete run has an
error with the reason for each of their outcomes. Which check is judged at this moment stands in a file that outlives
the process; after a crash, the run reads there what crashed. A write is a copy into mapped memory, which costs less
than a microsecond and needs no system call.
"""

from __future__ import annotations

import mmap
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from assay.model.facts import frozen

NOTE_BYTES = 4096
_SIGNALLED, _SEPARATOR = b"signalled", "\0"
KEY_PREFIX, SUSPECT_KEY = "unjudged ", "suspect"
"""Keys in `about` of a shard's file."""


@frozen
class JudgingNote:
    """What was judged when a process ended: a check and a subject, or a module that was imported (`subject` is "").

    `signalled`: a signal from outside ended the process in an orderly way, so the check may have no part in it.
    """

    check: str
    subject: str
    signalled: bool = False


class CurrentCheck:
    """Writes the note of one process. Raises OSError where the file cannot be written."""

    def __init__(self, store: Path) -> None:
        """`store` is the file of outcomes; the note lies beside it."""
        path = locate_note(store)
        path.write_bytes(bytes(NOTE_BYTES))  # written, not sparse: a full disk must show now, and not as a SIGBUS
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), NOTE_BYTES)

    def begin(self, check: str, subject: str = "") -> None:
        """Note that a check is judged now, or that a module is imported."""
        text = f"{check}{_SEPARATOR}{subject}{_SEPARATOR}".encode(errors="replace")[: NOTE_BYTES - len(_SIGNALLED) - 1]
        self._memory[: len(text) + 1] = text + b"\0"

    def end(self) -> None:
        """Note that it has ended."""
        self._memory[0] = 0

    def note_signal(self) -> None:
        """Note that a signal from outside ends the process during this check."""
        self._memory[NOTE_BYTES - len(_SIGNALLED) :] = _SIGNALLED


def locate_note(store: Path) -> Path:
    """Return the note's file for a file of outcomes."""
    return store.with_suffix(".now")


def read_note(store: Path) -> JudgingNote | None:
    """Return what a process that has ended was judging, None where it was between two checks."""
    try:
        content = locate_note(store).read_bytes()
    except OSError:
        return None
    check, subject, *_ = [*content.decode(errors="replace").split(_SEPARATOR, 2), ""]
    return JudgingNote(check, subject, content.endswith(_SIGNALLED)) if check else None


_PUT = "INSERT OR REPLACE INTO about VALUES (?, ?)"


class UnjudgedReasons:
    """The reasons, by module (`suites/test_x.py`), by check, and by check and subject. The closest one counts."""

    def __init__(self, about: Mapping[str, str]) -> None:
        self._reasons = {
            key.removeprefix(KEY_PREFIX): reason for key, reason in about.items() if key.startswith(KEY_PREFIX)
        }

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def find(self, check: str, subject: str = "") -> str:
        """Return why a check (or a module) has no outcome on a subject, "" where nothing is known."""
        names = (_join(check, subject), check, check.partition("::")[0])
        return next((self._reasons[name] for name in names if name in self._reasons), "")


class UnjudgedChecks:
    """Writes the reasons into a shard's file, while no process judges the shard."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, store: Path) -> UnjudgedChecks:
        """Open a shard's file."""
        return cls(sqlite3.connect(store, isolation_level=None, timeout=60))

    def __enter__(self) -> UnjudgedChecks:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, check: str, subject: str, reason: str) -> None:
        """Add the reason of one outcome; without a subject, of all outcomes of a check or a module."""
        self._connection.execute(_PUT, (KEY_PREFIX + _join(check, subject), reason))

    def count(self, check: str) -> int:
        """Return on how many subjects a check has no outcome."""
        pattern = f"{KEY_PREFIX}{check}["
        query = "SELECT count(*) FROM about WHERE substr(key, 1, ?) = ?"
        count: int = self._connection.execute(query, (len(pattern), pattern)).fetchone()[0]
        return count

    def replace_suspect(self, note: JudgingNote) -> JudgingNote | None:
        """Remember what was judged when a signal from outside came. Return what was remembered before."""
        row = self._connection.execute("SELECT value FROM about WHERE key = ?", (SUSPECT_KEY,)).fetchone()
        self._connection.execute(_PUT, (SUSPECT_KEY, "\0".join((note.check, note.subject))))
        return replace(note, check=row[0].split("\0")[0], subject=row[0].split("\0")[1]) if row else None


def encode_reasons(reasons: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return reasons of modules or checks as entries of `about`."""
    return {KEY_PREFIX + name: reason for name, reason in reasons}


def _join(check: str, subject: str) -> str:
    return f"{check}[{subject}]" if subject else check
