"""Stores the outcomes of a session in the file of `--assay-store`, as soon as there are any.

The file is the checkpoint too: what an earlier session stored in it is not judged again. Workers of xdist write a file
each beside it; the session that started them merges these.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay.ledger.runs.reader import INFLUENCES_KEY, StoredRun
from assay.ledger.runs.run_manifest import NEW_RUN_FIX, create_run, read_program_versions
from assay.ledger.runs.writer import OutcomeWriter, merge_run_files
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import Outcome, SuiteRun
from assay.validate.judging.evidence_cache import CachedEvidence, EvidenceCache, ReadingUnavailable
from assay.validate.judging.unjudged_checks import CurrentCheck, UnjudgedReasons, encode_reasons

if TYPE_CHECKING:  # a run imports this too, and needs no pytest
    import pytest

    from assay.validate.runs.command_line import NamedSubject

JUDGED_KEY = "judged"
"""Key in `about` of a shard's file that pytest has judged to its end."""
IMPORTED = "imported"
"""What is said of a file without hooks that checks, or files of theirs, have imported."""
STORE_FIX = "name a file of outcomes of the same run, or a new one in a folder that you may write to"


class OutcomeDelivery:
    """Writes a session's outcomes to `file`, for `run`. `started` is what the file holds already.

    `current` notes what is judged at the moment, None where nobody would read that.
    """

    def __init__(
        self, file: Path, run: SuiteRun, writer: OutcomeWriter, started: StartedRun, current: CurrentCheck | None
    ) -> None:
        self.file = file
        self.run = run
        self._writer = writer
        self.current = current
        self._judged = started.judged
        self.unjudged = started.unjudged
        self._influences = started.influences
        self._recorded: set[str] = set()
        self.add_left_out, self.close = writer.add_left_out, writer.close

    def __call__(self, outcome: Outcome) -> None:
        """Write an outcome."""
        self._writer(outcome)

    def open_evidence(self, folder: Path, nodes: Mapping[str, Node]) -> EvidenceCache:
        """Return the evidence of a folder; each document that a check reads is recorded in the file."""
        return RecordedEvidenceCache(folder, nodes, self.record_document)

    def record_document(self, name: str, document: CachedEvidence) -> None:
        """Record that verdicts depend on this document, before any of them is written."""
        if document.digest not in self._recorded:
            self._recorded.add(document.digest)
            self._writer.add_documents([(name, document.digest, document.at, document.basis)])

    def skip_judged(self, check: str, subjects: list[NamedSubject]) -> list[NamedSubject]:
        """Return the subjects for which the file holds no outcome of this check, and no reason for having none."""
        if check not in self._judged and not self.unjudged:
            return subjects
        return [subject for subject in subjects if not self.has_judged(check, subject.id)]

    def has_judged(self, check: str, subject: str) -> bool:
        """Return whether the file held an outcome of a check on a subject at the start of the session, or why not."""
        return subject in self._judged.get(check, ()) or bool(self.unjudged and self.unjudged.find(check, subject))

    def note_influences(self, files: Mapping[str, str]) -> None:
        """Record what outside the suites may change verdicts. Raises AssayError where an earlier session had others.

        What checks import may come later than the rest.
        """
        before: dict[str, str] = json.loads(self._influences or "null") or dict(files)
        changed = []
        for name in sorted({**before, **files}):
            was, now = before.get(name), files.get(name)
            is_late = not (was and now) and (was or now or "").endswith(f" {IMPORTED}")  # one session has imported it
            if was != now and not is_late:
                changed.append(name)
        if changed:
            raise AssayError(f"{', '.join(changed)} changed since the run started", fix=NEW_RUN_FIX)
        self._writer.set_about(**{INFLUENCES_KEY: json.dumps(files, ensure_ascii=False)})

    def add_unjudged(self, module: str, reason: str) -> None:
        """Write why the checks of a module have no outcomes."""
        self._writer.set_about(**encode_reasons([(module, reason)]))


class RecordedEvidenceCache(EvidenceCache):
    """An evidence cache that passes each document that it reads to `record`."""

    def __init__(self, folder: Path, nodes: Mapping[str, Node], record: Callable[[str, CachedEvidence], None]) -> None:
        super().__init__(folder, nodes)
        self._record = record

    def _load(self, path: Path, name: str) -> CachedEvidence | ReadingUnavailable:
        document = super()._load(path, name)
        if isinstance(document, CachedEvidence):
            self._record(name, document)
        return document


def open_delivery(config: pytest.Config, fleet: Fleet, nodes: Collection[str]) -> OutcomeDelivery | None:
    """Return what stores the outcomes of a session, None without --assay-store. Raises AssayError."""
    option = config.getoption("--assay-store")
    if not option:
        return None
    file = Path(option)
    phases = {name for text in config.getoption("--assay-phase") for name in text.split(",")}
    try:
        started = StartedRun.read(file) if file.exists() else StartedRun({}, UnjudgedReasons({}))
        run = started.run or create_run(fleet, nodes, phases, datetime.now(UTC))
        worker = getattr(config, "workerinput", {}).get("workerid")  # each worker of xdist has a file of its own
        own_file = file.with_name(f"{file.name}.{worker}") if worker else file
        writer = OutcomeWriter(own_file, run, read_program_versions())
        is_one_process = bool(config.getoption("--assay-shard")) and not hasattr(config, "workerinput")
        return OutcomeDelivery(file, run, writer, started, CurrentCheck(file) if is_one_process else None)
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


def mark_judged(file: Path) -> None:
    """Record in a shard's file that all was judged, after the last outcome. Nothing else says so."""
    with closing(sqlite3.connect(file, timeout=60)) as data, data:
        data.execute("INSERT OR REPLACE INTO about VALUES (?, '')", (JUDGED_KEY,))


def delete_run_file(file: Path) -> None:
    """Delete a file of outcomes, with SQLite's files beside it."""
    for end in ("", "-wal", "-shm"):
        file.with_name(file.name + end).unlink(missing_ok=True)


def has_deciding_outcomes(file: Path) -> bool | None:
    """Return whether any outcome of a file counts against its subject, None where the file holds none."""
    with StoredRun.open(file) as stored:
        return stored.count_deciding() > 0 if stored.counts() else None


@dataclass(frozen=True)
class StartedRun:
    """What a file of outcomes holds: the subjects judged by check, why others were not, its run, and influences."""

    judged: dict[str, set[str]]
    unjudged: UnjudgedReasons
    run: SuiteRun | None = None
    influences: str = ""

    @classmethod
    def read(cls, file: Path) -> StartedRun:
        """Return what a file of outcomes holds."""
        with StoredRun.open(file) as stored:
            about = stored.about
            return cls(stored.judged_subjects(), UnjudgedReasons(about), stored.run, about.get(INFLUENCES_KEY, ""))
