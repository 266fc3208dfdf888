"""Finds the runs, artefacts and stored evidence that the policy no longer wants, and deletes them.

A run is deleted only if history has its outcomes, and if it can no longer be resumed. What cannot be read is kept, and
named. Evidence is deleted only if nothing refers to it: the newest documents, which name earlier scans and weeks too;
runs and shares that stay, with their artefacts; the ledger's outcomes and entries. If one of these cannot be read, all
evidence is kept. An object counts as new when it is stored or judged again, so that no command loses what it is about
to refer to.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from assay.ledger.history import parquet_files
from assay.ledger.runs.reader import StoredRun, list_runs
from assay.model.errors import AssayError
from assay.model.evidence import OBJECT_SUFFIX, read_digest
from assay.model.facts import fact, frozen
from assay.model.specs.serving import RetentionRules

ASIDE_SUFFIX = ".pruned"


@fact
class UnprunedRun:
    """A run that is kept although it is old."""

    run: str
    """The id of the run."""
    why: str
    """Why it is kept."""


@frozen
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
    appended = set.intersection(
        *(parquet_files.list_runs_of_table(reports / "history", table) for table in parquet_files.HISTORY_TABLES)
    )
    gone = list[Path]()
    kept = list[UnprunedRun]()
    rejudgeable = 0
    for run in runs[: -rules.least_runs]:
        try:
            with StoredRun.open_whole(run) as stored:
                if datetime.fromisoformat(stored.run.at) >= oldest:
                    continue
                if not stored.has_ended:
                    kept.append(UnprunedRun(run.parent.name, "it has not ended"))
                    continue
                if stored.run.id not in appended:
                    reason = "history does not have its outcomes yet; the next run adds them"
                    kept.append(UnprunedRun(run.parent.name, reason))
                    continue
                rejudgeable += bool(stored.run.spec_commit and not stored.run.dirty)
        except AssayError as error:
            kept.append(UnprunedRun(run.parent.name, str(error)))
            continue
        gone.append(run)
    artefacts = tuple(_find_unused_artefacts(reports, sorted({*runs}.difference(gone)), bool(gone)))
    size = sum(file.stat().st_size for run in gone for file in run.parent.rglob("*") if file.is_file())
    size += sum(file.stat().st_size for file in artefacts)
    return PrunePlan(tuple(gone), artefacts, size, tuple(kept), rejudgeable)


def _find_unused_artefacts(reports: Path, kept: Sequence[Path], is_due: bool) -> Iterator[Path]:
    """Yield the artefacts that no kept run refers to; none where a run cannot be read."""
    if not is_due:
        return
    used: set[str] = set()
    for run in kept:
        try:
            with closing(sqlite3.connect(f"file:{run}?mode=ro", uri=True)) as connection:
                used |= {digest for (digest,) in connection.execute("SELECT DISTINCT digest FROM artefact")}
        except sqlite3.Error:
            return
    for file in sorted((reports / "artefacts").glob("*/*.txt")):
        if file.stem not in used:
            yield file


_DIGEST = re.compile(rb"[0-9a-f]{64}")


@frozen
class EvidencePlan:
    """The objects to delete, their size in bytes, the time (since 1970) before which they were last used.

    `kept_all` is the reason why no evidence may be deleted, "" where it may.
    """

    objects: tuple[Path, ...] = ()
    size: int = 0
    before_s: float = 0.0
    kept_all: str = ""

    def execute(self) -> int:
        """Delete the objects that nobody has used since the plan was made; return how many. A kill loses no object."""
        return sum(_delete_unused(path, self.before_s) for path in self.objects)


def restore_set_aside(evidence: Path) -> None:
    """Give the objects their names back that a killed process had set aside."""
    for aside in (evidence / "objects").glob(f"*/.*{ASIDE_SUFFIX}"):
        _give_back(aside, aside.with_name(aside.name[1:].removesuffix(ASIDE_SUFFIX)))


def plan_evidence_pruning(
    evidence: Path,
    reports: Path,
    leaving: Collection[Path],
    named: Iterable[str],
    rules: RetentionRules,
    now: datetime,
) -> EvidencePlan:
    """Return the evidence to delete. `leaving` are the files of runs that go too; `named` are the ledger's digests."""
    if rules.evidence_days is None:
        return EvidencePlan()
    before_s = (now - timedelta(days=rules.evidence_days)).timestamp()
    paths = sorted((evidence / "objects").glob(f"*/[0-9a-f]*{OBJECT_SUFFIX}"))
    old = {read_digest(path): path for path in paths if path.stat().st_mtime < before_s}  # by when they were last used
    if not old:
        return EvidencePlan()
    try:
        for digest in _list_newest(evidence):
            old.pop(digest, None)
        for digest in _list_judged(reports, leaving):
            old.pop(digest, None)
        for digest in named:
            old.pop(digest, None)
    except (AssayError, sqlite3.Error, OSError) as error:
        return EvidencePlan(kept_all=str(error))
    objects = tuple(old.values())
    return EvidencePlan(objects, sum(path.stat().st_size for path in objects), before_s)


def _list_newest(evidence: Path) -> Iterator[str]:
    """Yield the digests of the newest documents, and those that they name."""
    for path in (*evidence.glob("latest/*.json"), *evidence.glob("pushed/*.json")):
        content = path.read_bytes()
        yield hashlib.sha256(content).hexdigest()
        yield from map(bytes.decode, _DIGEST.findall(content))


def _list_judged(reports: Path, leaving: Collection[Path]) -> Iterator[str]:
    """Yield what the runs that stay, and their shares, judged or kept. Raises AssayError for a damaged one."""
    gone = {run.parent for run in leaving}
    for file in sorted((reports / "runs").glob("*/*.sqlite")):
        if file.parent not in gone:
            with StoredRun.open_whole(file) as stored:
                for table in ("document", "artefact"):
                    yield from (digest for (digest,) in stored.connection.execute(f"SELECT digest FROM {table}"))


def _delete_unused(path: Path, before_s: float) -> bool:
    """Delete an object, unless somebody has used it: set aside, it is no longer found, so its time says for certain."""
    aside = path.with_name(f".{path.name}{ASIDE_SUFFIX}")
    try:
        path.rename(aside)
        if aside.stat().st_mtime < before_s:
            aside.unlink()
            return True
    except FileNotFoundError:  # another process deletes too
        return False
    _give_back(aside, path)
    return False


def _give_back(aside: Path, path: Path) -> None:
    """Rename a file to what it was, unless its content was stored again meanwhile: then the two are equal."""
    if path.exists():
        aside.unlink(missing_ok=True)
    else:
        aside.rename(path)
