"""Finds the runs and artefacts that the policy no longer wants, and deletes them.

A run is deleted only if history has its outcomes, and if it can no longer be resumed. What cannot be read is kept, and
named.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from assay.ledger.history import parquet_files
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.run_lookup import list_runs
from assay.model.errors import AssayError
from assay.model.specs.intake_limits import RetentionRules


@dataclass(frozen=True, slots=True)
class UnprunedRun:
    """A run that is old enough, and why it is kept nevertheless."""

    run: str
    why: str


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """The runs and artefacts to delete, their size in bytes, and what is kept although it is old.

    `rejudgeable` are those runs that `assay rejudge` can judge again now, and no longer after.
    """

    runs: tuple[Path, ...]
    artefacts: tuple[Path, ...]
    size: int
    kept: tuple[UnprunedRun, ...]
    rejudgeable: int

    def execute(self) -> None:
        """Delete the runs, then the artefacts that only they had. A kill leaves artefacts for the next time."""
        for run in self.runs:
            shutil.rmtree(run.parent)
        for artefact in self.artefacts:
            artefact.unlink(missing_ok=True)


def plan_pruning(reports: Path, rules: RetentionRules, now: datetime) -> PrunePlan:
    """Return what the rules allow to delete in a reports folder."""
    runs = list_runs(reports)
    if rules.runs_days is None:
        return PrunePlan((), (), 0, (), 0)
    oldest = now - timedelta(days=rules.runs_days)
    told = set.intersection(
        *(parquet_files.list_runs_of_table(reports / "history", table) for table in parquet_files.HISTORY_TABLES)
    )
    gone, kept, rejudgeable = list[Path](), list[UnprunedRun](), 0
    for run in runs[: -rules.least_runs]:
        try:
            with StoredRun.open_whole(run) as stored:
                if datetime.fromisoformat(stored.run.at) >= oldest:
                    continue
                if why := _find_reason_to_keep(stored, told):
                    kept.append(UnprunedRun(run.parent.name, why))
                    continue
                rejudgeable += bool(stored.run.spec_commit and not stored.run.dirty)
        except AssayError as error:
            kept.append(UnprunedRun(run.parent.name, str(error)))
            continue
        gone.append(run)
    artefacts = tuple(_find_unused_artefacts(reports, [run for run in runs if run not in set(gone)], bool(gone)))
    size = sum(file.stat().st_size for run in gone for file in run.parent.rglob("*") if file.is_file())
    size += sum(file.stat().st_size for file in artefacts)
    return PrunePlan(tuple(gone), artefacts, size, tuple(kept), rejudgeable)


def _find_reason_to_keep(stored: StoredRun, told: Iterable[str]) -> str:
    if not stored.has_ended:
        return "it has not ended"
    return "" if stored.run.id in told else "history does not have its outcomes yet; the next run adds them"


def _find_unused_artefacts(reports: Path, kept: Sequence[Path], is_due: bool) -> Iterator[Path]:
    """Yield the artefacts that neither a kept run nor the report refers to; none where a run cannot be read."""
    if not is_due:
        return
    used: set[str] = set()
    for database in (*kept, reports / "standing.sqlite"):
        try:
            used |= set(_read_digests(database)) if database.exists() else set()
        except sqlite3.Error:
            return
    for file in sorted((reports / "artefacts").glob("*/*.txt")):
        if file.stem not in used:
            yield file


def _read_digests(database: Path) -> Iterator[str]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        yield from (digest for (digest,) in connection.execute("SELECT DISTINCT digest FROM artefact"))
