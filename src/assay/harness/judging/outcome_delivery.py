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

from assay.harness.judging.evidence_cache import CachedEvidence, EvidenceCache, ReadingUnavailable
from assay.harness.selection.selected_subjects import NamedSubject
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun
from assay.results.store.reader import StoredRun, read_judged_subjects
from assay.results.store.run_manifest import create_run, read_program_versions
from assay.results.store.writer import OutcomeWriter, merge_run_files

STORE_FIX = "name a file of such outcomes, or a new one in a folder that you may write to"


class OutcomeDelivery:
    """Writes a session's outcomes to `file`, for `run`. `before` is what was judged already: subjects by check."""

    def __init__(self, file: Path, run: SuiteRun, writer: OutcomeWriter, before: dict[str, set[str]]) -> None:
        self.file, self.run, self._writer, self._before = file, run, writer, before
        self._known: set[str] = set()
        self.left_out, self.close = writer.left_out, writer.close

    def __call__(self, outcome: Outcome) -> None:
        """Write an outcome down."""
        self._writer(outcome)

    def open_evidence(self, folder: Path) -> EvidenceCache:
        """Return the evidence in a folder, of which what is looked at is written down too."""
        return RecordedEvidenceCache(folder, self.record_document)

    def record_document(self, name: str, document: CachedEvidence) -> None:
        """Write down that verdicts rest on this document, before any of them is written."""
        if document.digest not in self._known:
            self._known.add(document.digest)
            self._writer.add_documents([(name, document.digest, document.evidence.at.isoformat())])

    def skip_judged(self, check: str, subjects: list[NamedSubject]) -> list[NamedSubject]:
        """Return the subjects that this check has not judged before."""
        before = self._before.get(check)
        return [one for one in subjects if one.id not in before] if before else subjects

    def has_judged(self, check: str, subject: str) -> bool:
        """Return whether this was judged before."""
        return subject in self._before.get(check, ())


class RecordedEvidenceCache(EvidenceCache):
    """A shelf that tells which documents were looked at."""

    def __init__(self, folder: Path, tell: Callable[[str, CachedEvidence], None]) -> None:
        super().__init__(folder)
        self._tell = tell

    def _load(self, path: Path, name: str) -> CachedEvidence | ReadingUnavailable:
        found = super()._load(path, name)
        if isinstance(found, CachedEvidence):
            self._tell(name, found)
        return found


def open_delivery(config: pytest.Config, fleet: Fleet, nodes: Collection[str]) -> OutcomeDelivery | None:
    """Return what takes the outcomes of a session, None where the user keeps none. Raises Trouble."""
    given = config.getoption("--store")
    if not given:
        return None
    file = Path(given)
    phases = {name for text in config.getoption("--phase") for name in text.split(",")}
    try:
        run, before = _read_begun_run(file) or (create_run(fleet, nodes, phases, datetime.now(UTC)), {})
        return OutcomeDelivery(
            file, run, OutcomeWriter(_file_of_process(file, config), run, read_program_versions()), before
        )
    except (OSError, sqlite3.Error, AssayError) as error:
        raise AssayError(f"the outcomes cannot be kept: {error}", where=given, fix=STORE_FIX) from None


def merge_worker_files(file: Path) -> None:
    """Bring what workers of xdist have written into the session's file. Raises Trouble."""
    parts = sorted(file.parent.glob(f"{file.name}.gw*[0-9]"))
    if not parts:
        return
    with StoredRun.open(parts[0]) as stored:
        run = stored.run
    OutcomeWriter(file, run).close()
    merge_run_files(file, parts)
    for part in parts:
        delete_run_file(part)
    OutcomeWriter(file, run).close()  # which makes one file of it


def delete_run_file(file: Path) -> None:
    """Delete a file of outcomes, with what SQLite keeps beside it."""
    for end in ("", "-wal", "-shm"):
        file.with_name(file.name + end).unlink(missing_ok=True)


def has_deciding_outcomes(file: Path) -> bool | None:
    """Return whether anything in a file counts against its subject, None where the file holds no outcome."""
    with StoredRun.open(file) as stored:
        return stored.count_deciding() > 0 if stored.counts() else None


def _file_of_process(file: Path, config: pytest.Config) -> Path:
    """Return the file that this process writes to."""
    worker = getattr(config, "workerinput", {}).get("workerid")
    return file.with_name(f"{file.name}.{worker}") if worker else file


def _read_begun_run(file: Path) -> tuple[SuiteRun, dict[str, set[str]]] | None:
    """Return the run that a file holds, and what was judged in it; None where there is no such file."""
    if not file.exists():
        return None
    with StoredRun.open(file) as stored:
        return stored.run, read_judged_subjects(stored)
