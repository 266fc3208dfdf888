"""Stores the outcomes of a session in the file of `--store`, as soon as there are any.

The file is the checkpoint too: what an earlier session stored in it is not judged again. Workers of xdist write a file
each beside it; the session that started them merges these.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay.harness.judging.evidence_cache import CachedEvidence, EvidenceCache, ReadingUnavailable
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun
from assay.results.store.reader import StoredRun
from assay.results.store.run_manifest import create_run, read_program_versions
from assay.results.store.writer import OutcomeWriter, merge_run_files

if TYPE_CHECKING:  # a run imports this too, and needs no pytest
    import pytest

    from assay.harness.selection.selected_subjects import NamedSubject

STORE_FIX = "name a file of outcomes of the same run, or a new one in a folder that you may write to"


class OutcomeDelivery:
    """Writes a session's outcomes to `file`, for `run`. `judged` is what the file holds already: subjects by check."""

    def __init__(self, file: Path, run: SuiteRun, writer: OutcomeWriter, judged: dict[str, set[str]]) -> None:
        self.file, self.run, self._writer, self._judged = file, run, writer, judged
        self._recorded: set[str] = set()
        self.add_left_out, self.close = writer.add_left_out, writer.close

    def __call__(self, outcome: Outcome) -> None:
        """Write an outcome."""
        self._writer(outcome)

    def open_evidence(self, folder: Path) -> EvidenceCache:
        """Return the evidence of a folder; each document that a check reads is recorded in the file."""
        return RecordedEvidenceCache(folder, self.record_document)

    def record_document(self, name: str, document: CachedEvidence) -> None:
        """Record that verdicts depend on this document, before any of them is written."""
        if document.digest not in self._recorded:
            self._recorded.add(document.digest)
            self._writer.add_documents([(name, document.digest, document.at, document.basis)])

    def skip_judged(self, check: str, subjects: list[NamedSubject]) -> list[NamedSubject]:
        """Return the subjects for which the file holds no outcome of this check."""
        judged = self._judged.get(check)
        return [subject for subject in subjects if subject.id not in judged] if judged else subjects

    def has_judged(self, check: str, subject: str) -> bool:
        """Return whether the file held an outcome of a check on a subject at the start of the session."""
        return subject in self._judged.get(check, ())


class RecordedEvidenceCache(EvidenceCache):
    """An evidence cache that passes each document that it reads to `record`."""

    def __init__(self, folder: Path, record: Callable[[str, CachedEvidence], None]) -> None:
        super().__init__(folder)
        self._record = record

    def _load(self, path: Path, name: str) -> CachedEvidence | ReadingUnavailable:
        found = super()._load(path, name)
        if isinstance(found, CachedEvidence):
            self._record(name, found)
        return found


def open_delivery(config: pytest.Config, fleet: Fleet, nodes: Collection[str]) -> OutcomeDelivery | None:
    """Return what stores the outcomes of a session, None without --store. Raises AssayError."""
    option = config.getoption("--store")
    if not option:
        return None
    file = Path(option)
    phases = {name for text in config.getoption("--phase") for name in text.split(",")}
    try:
        run, judged = _read_started_run(file) or (create_run(fleet, nodes, phases, datetime.now(UTC)), {})
        writer = OutcomeWriter(_file_of_process(file, config), run, read_program_versions())
        return OutcomeDelivery(file, run, writer, judged)
    except (OSError, sqlite3.Error, AssayError) as error:
        raise AssayError(f"the outcomes cannot be stored: {error}", where=option, fix=STORE_FIX) from None


def merge_worker_files(file: Path) -> None:
    """Merge the files of xdist's workers into the session's file. Raises AssayError."""
    parts = sorted(file.parent.glob(f"{file.name}.gw*[0-9]"))
    if not parts:
        return
    with StoredRun.open(parts[0]) as stored:
        run = stored.run
    OutcomeWriter(file, run).close()
    merge_run_files(file, parts)
    for part in parts:
        delete_run_file(part)
    OutcomeWriter(file, run).close()  # which merges the write-ahead log into the file


def delete_run_file(file: Path) -> None:
    """Delete a file of outcomes, with SQLite's files beside it."""
    for end in ("", "-wal", "-shm"):
        file.with_name(file.name + end).unlink(missing_ok=True)


def has_deciding_outcomes(file: Path) -> bool | None:
    """Return whether any outcome of a file counts against its subject, None where the file holds none."""
    with StoredRun.open(file) as stored:
        return stored.count_deciding() > 0 if stored.counts() else None


def _file_of_process(file: Path, config: pytest.Config) -> Path:
    """Return the file that this process writes to."""
    worker = getattr(config, "workerinput", {}).get("workerid")
    return file.with_name(f"{file.name}.{worker}") if worker else file


def _read_started_run(file: Path) -> tuple[SuiteRun, dict[str, set[str]]] | None:
    """Return the run of a file, and the subjects judged in it by check; None where there is no file."""
    if not file.exists():
        return None
    with StoredRun.open(file) as stored:
        return stored.run, stored.judged_subjects()
