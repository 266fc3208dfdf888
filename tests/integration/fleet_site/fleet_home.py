"""What a fleet's home holds, to see afterwards that nothing of it is gone and that no rehearsal wrote there."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

MADE_AGAIN = re.compile(
    r"(^|/)(cache/|[^/]*lock$|[^/]*-(wal|shm|journal)$|\.[^/]*|passes\.sqlite$|heard\.sqlite$)|\.part$|/nodes$|/share-\d"
)
"""What may come and go: caches, locks, SQLite's own files, scratch files, and what only a run that goes on needs."""
LEDGER = "ledger.sqlite"


@dataclass(frozen=True)
class HomeState:
    """The files of a home below `.assay` and `reports`, each with a digest, and the ledger's entries."""

    files: dict[str, str]
    entries: tuple[str, ...]

    def describe_loss(self, later: HomeState) -> str:
        """Return what is in this state and no longer in a later one, "" for nothing."""
        gone = sorted(set(self.files) - set(later.files))
        if gone:
            return f"files are gone: {gone}"
        if later.entries[: len(self.entries)] != self.entries:
            return "entries of the ledger are gone, or are others"
        return ""

    def describe_writing(self, later: HomeState) -> str:
        """Return what a later state has that this one had not, "" for nothing."""
        changed = sorted(name for name, digest in later.files.items() if self.files.get(name) != digest)
        more = later.entries[len(self.entries) :]
        return f"written: {changed}, {len(more)} entries" if changed or more else ""


def read_home(root: Path) -> HomeState:
    """Return the state of the fleet's home in the repository at `root`."""
    folder = root / ".assay"
    files = {name: _digest(path) for name, path in _list_files(root, folder, root / "reports")}
    entries = _read_entries(folder / LEDGER)
    return HomeState(files, entries)


def _list_files(root: Path, *folders: Path) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        for path in folder.rglob("*"):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not MADE_AGAIN.search(name):
                yield path.relative_to(root).as_posix(), path


def _digest(path: Path) -> str:
    if path.suffix in {".sqlite", ".duckdb"}:
        return ""  # a checkpoint moves pages into it; entries are compared as such
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_entries(ledger: Path) -> tuple[str, ...]:
    if not ledger.exists():
        return ()
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True, timeout=60)) as data:
        if not data.execute("SELECT 1 FROM sqlite_master WHERE name = 'entry'").fetchone():
            return ()
        return tuple(one for (one,) in data.execute("SELECT id FROM entry ORDER BY seq"))
