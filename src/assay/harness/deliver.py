"""Where outcomes go as soon as there are any: chosen once at the start of a session, from its options.

The file is the checkpoint too: what a session before this one has delivered to it is not judged again. Workers of xdist
write a file each beside it, which the session that started them takes in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.harness.begun import begun, versions
from assay.harness.judged import judged
from assay.harness.shelf import Document, Shelf
from assay.harness.silence import Silence
from assay.harness.store.merge import merge
from assay.harness.store.read import Stored
from assay.harness.store.write import Writer
from assay.harness.subjects import Named
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, Run

MENDED = "name a file of such outcomes, or a new one in a folder that you may write to"


class Delivery:
    """Writes a session's outcomes to `file`, for `run`. `before` is what was judged already: subjects by check."""

    def __init__(self, file: Path, run: Run, writer: Writer, before: dict[str, set[str]]) -> None:
        self.file, self.run, self._writer, self._before = file, run, writer, before
        self._known: set[str] = set()
        self.left_out, self.close = writer.left_out, writer.close

    def __call__(self, outcome: Outcome) -> None:
        """Write an outcome down."""
        self._writer(outcome)

    def shelf(self, folder: Path) -> Shelf:
        """Return the evidence in a folder, of which what is looked at is written down too."""
        return Watched(folder, self.looked_at)

    def looked_at(self, name: str, document: Document) -> None:
        """Write down that verdicts rest on this document, before any of them is written."""
        if document.digest not in self._known:
            self._known.add(document.digest)
            self._writer.looked_at([(name, document.digest, document.evidence.at.isoformat())])

    def due(self, check: str, subjects: list[Named]) -> list[Named]:
        """Return the subjects that this check has not judged before."""
        before = self._before.get(check)
        return [one for one in subjects if one.id not in before] if before else subjects

    def has(self, check: str, subject: str) -> bool:
        """Return whether this was judged before."""
        return subject in self._before.get(check, ())


class Watched(Shelf):
    """A shelf that tells which documents were looked at."""

    def __init__(self, folder: Path, tell: Callable[[str, Document], None]) -> None:
        super().__init__(folder)
        self._tell = tell

    def _load(self, path: Path, name: str) -> Document | Silence:
        found = super()._load(path, name)
        if isinstance(found, Document):
            self._tell(name, found)
        return found


def delivery(config: pytest.Config, fleet: Fleet, nodes: Collection[str]) -> Delivery | None:
    """Return what takes the outcomes of a session, None where the user keeps none. Raises Trouble."""
    given = config.getoption("--store")
    if not given:
        return None
    file = Path(given)
    phases = {name for text in config.getoption("--phase") for name in text.split(",")}
    try:
        run, before = _begun_in(file) or (begun(fleet, nodes, phases, datetime.now(UTC)), {})
        return Delivery(file, run, Writer(_own(file, config), run, versions()), before)
    except (OSError, sqlite3.Error, Trouble) as error:
        raise Trouble(f"the outcomes cannot be kept: {error}", where=given, fix=MENDED) from None


def take_in(file: Path) -> None:
    """Bring what workers of xdist have written into the session's file. Raises Trouble."""
    parts = sorted(file.parent.glob(f"{file.name}.gw*[0-9]"))
    if not parts:
        return
    with Stored.open(parts[0]) as stored:
        run = stored.run
    Writer(file, run).close()
    merge(file, parts)
    for part in parts:
        remove(part)
    Writer(file, run).close()  # which makes one file of it


def remove(file: Path) -> None:
    """Delete a file of outcomes, with what SQLite keeps beside it."""
    for end in ("", "-wal", "-shm"):
        file.with_name(file.name + end).unlink(missing_ok=True)


def decides(file: Path) -> bool | None:
    """Return whether anything in a file counts against its subject, None where the file holds no outcome."""
    with Stored.open(file) as stored:
        return stored.deciding() > 0 if stored.counts() else None


def _own(file: Path, config: pytest.Config) -> Path:
    """Return the file that this process writes to."""
    worker = getattr(config, "workerinput", {}).get("workerid")
    return file.with_name(f"{file.name}.{worker}") if worker else file


def _begun_in(file: Path) -> tuple[Run, dict[str, set[str]]] | None:
    """Return the run that a file holds, and what was judged in it; None where there is no such file."""
    if not file.exists():
        return None
    with Stored.open(file) as stored:
        return stored.run, judged(stored)
