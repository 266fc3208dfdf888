"""Why checks of a shard have no outcome: they crashed their process, or their module cannot be imported.

The reasons are in the shard's own file. A fresh process does not try these checks again, and the complete run has an
error with the reason for each of their outcomes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from assay.validate.judging.current_check import JudgingNote

KEY_PREFIX, SUSPECT_KEY = "unjudged ", "suspect"
"""Keys in `about` of a shard's file."""
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
