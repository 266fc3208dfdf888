"""Judges a stored run again: by its own specs, which must come to the same in every byte, or by others.

Nothing is recorded: what comes out lies in a temporary folder, for as long as somebody looks at it.

What a run was judged by, laid out anew in a folder: specs and suites of a commit, documents by their hash.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from assay.fleet.fleet_loader import load_fleet
from assay.fleet.git import REGULAR_MODES, read_git_objects, resolve_commit, run_git
from assay.fleet.repository_tree import MAX_FILE_BYTES, CommitTree
from assay.harness.items.suite_hooks import REJUDGED_RUN_VARIABLE
from assay.harness.runs.local_processes import LocalProcesses
from assay.harness.runs.progress_and_completeness import OutcomesByPool
from assay.harness.runs.run_validation import RunMeans, run_validation
from assay.harness.runs.sharding import RunShard
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.model.outcome import SuiteRun
from assay.results.comparison.paired_runs import RunEquality, compare_exactly
from assay.results.store.reader import StoredRun
from assay.results.store.run_manifest import RunManifest, hash_folders, read_program_versions

COMMIT_FOLDERS = ("inventory", "specs", "suites")
PYTEST_SETTINGS = ("pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py")
"""Where pytest looks for settings at the root of a fleet repository."""


def extract_commit(root: Path, commit: str, into: Path) -> None:
    """Write inventory, specs and suites of a commit, with pytest's settings, below `into`. Raises Trouble."""
    revision = CommitTree(root, commit)
    for path in (path for folder in COMMIT_FOLDERS for path in revision.files(folder)):
        _write(into / path, revision.read(path, MAX_FILE_BYTES))
    for path, content in _read_settings(root, commit).items():
        _write(into / path, content)


def link_evidence(evidence: Path, store: Path, documents: Mapping[str, str], into: Path) -> Path:
    """Return a folder of evidence with the `documents` (digest by name), as links to where they are kept.

    They are looked for in `store` by their digest, and, for evidence that was never stored, in the folder `evidence`
    that the run judged. One that is not there any more, or not as it was, is a link to nothing: judging says so.
    """
    latest, gone = into / "latest", into / "gone"
    latest.mkdir(parents=True)
    (into / "objects").symlink_to((store / "objects").resolve())
    for name, digest in documents.items():
        kept = store / "objects" / digest[:2] / f"{digest}.json"
        places = (kept, evidence / f"{name}.json")
        found = next((place.resolve() for place in places if _has_digest(place, digest)), gone / f"{digest}.json")
        (latest / f"{name}.json").symlink_to(found)
    return latest


def _has_digest(place: Path, digest: str) -> bool:
    """Whether a file holds the document of this digest, in the form that is digested or in another."""
    try:
        content = place.read_bytes()
        if hashlib.sha256(content).hexdigest() == digest:
            return True
        return place.stem != digest and EvidenceDocument.from_json(json.loads(content)).digest() == digest
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _read_settings(root: Path, commit: str) -> dict[str, bytes]:
    """Return the files of pytest's settings in a commit."""
    run = run_git(root, "ls-tree", "-z", commit, "--", *PYTEST_SETTINGS)
    objects = {}
    for line in run.stdout.decode(errors="surrogateescape").split("\0"):
        facts, _, path = line.partition("\t")
        if path and facts.startswith(REGULAR_MODES):
            objects[path] = facts.split()[2]
    read = read_git_objects(root, sorted(set(objects.values()))) if objects else {}
    return {path: read[name] for path, name in objects.items()}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


WORKING_FOLDER = "."
"""In place of a revision: the working folder as it is."""


@dataclass(frozen=True)
class RejudgedRun:
    """A run (`old`, its file) and what it came to when it was judged again (`new`) by the specs of `rev`.

    `itself` says that these are the specs that it was judged by; `programs` what judges otherwise than it did then.
    """

    old: Path
    new: Path
    rev: str
    is_original_spec: bool
    equality: RunEquality
    programs: tuple[str, ...]


class FixedClock:
    """The clock of a run: it stands at the time when that began, so that nothing expires which had not expired."""

    def __init__(self, at: str) -> None:
        self._at = datetime.fromisoformat(at)

    def now(self) -> datetime:
        """Return the time of the run."""
        return self._at

    def sleep(self, seconds: float) -> None:
        """Do nothing, as this time does not pass."""


class RejudgeProcesses(LocalProcesses):
    """Processes that know only what the ledger knew before a run."""

    def __init__(self, jobs: int, run: str) -> None:
        super().__init__(jobs)
        self._run = run

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """Begin with the first; the others follow as these end."""
        bound = {REJUDGED_RUN_VARIABLE: self._run}
        super().start([replace(one, environment={**one.environment, **bound}) for one in shards], deadline_s)


@contextmanager
def rejudge_run(
    root: Path,
    file: Path,
    store: Path,
    rev: str = "",
    *,
    ledger: str = "",
    jobs: int = 1,
    progress: Callable[[OutcomesByPool], None] | None = None,
) -> Iterator[RejudgedRun]:
    """Judge the run in `file` again, on the evidence in `store`, with passes from `ledger` (path or URL).

    `rev` is a commit, HERE for the folder `root` as it is, "" for the commit that the run was judged by. Raises Trouble
    where the run does not follow from a commit, or where there is nothing to judge. `progress` hears how far it is.
    """
    with StoredRun.open(file) as stored:
        order, documents = RunManifest.read(stored), stored.documents()
        about = stored.about
    with tempfile.TemporaryDirectory(prefix="assay-rejudge-") as scratch:
        home = Path(scratch)
        fleet = _load_fleet_of(root, order, rev, home / "fleet")
        evidence = link_evidence(order.evidence, store, {name: one[0] for name, one in documents.items()}, home)
        result = run_validation(
            fleet,
            evidence,
            nodes=order.run.nodes,
            phases=order.run.phases,
            reports=home / "reports",
            ledger=None,
            clock=FixedClock(order.run.at),
            extra=order.extra,
            means=RunMeans(RejudgeProcesses(jobs, order.run.id), progress=progress, baseline=ledger),
        )
        result.stored.close()
        new = result.stored.path
        told = "the working folder" if rev == WORKING_FOLDER else rev or f"commit {order.run.spec_commit[:12]}"
        itself = not rev or (
            rev != WORKING_FOLDER and resolve_commit(root, rev) == order.run.spec_commit and not order.run.dirty
        )
        yield RejudgedRun(file, new, told, itself, compare_exactly(file, new), tuple(_changed_programs(about)))


def _load_fleet_of(root: Path, order: RunManifest, rev: str, into: Path) -> Fleet:
    """Return the fleet of a revision, laid out in a folder. Raises Trouble."""
    if rev == WORKING_FOLDER:
        return load_fleet(root)
    if not rev:
        _require_commit(order.run)
    extract_commit(root, resolve_commit(root, rev or order.run.spec_commit), into)
    if not rev and hash_folders(into / "suites") != order.run.suite_hash:
        raise _no_commit_error(order.run, "files in suites/ that git does not keep")
    return load_fleet(into)


def _require_commit(run: SuiteRun) -> None:
    if run.dirty or not run.spec_commit:
        raise _no_commit_error(run, "changes that were not committed" if run.dirty else "a folder without git")


def _no_commit_error(run: SuiteRun, what: str) -> AssayError:
    fix = "`--spec .` judges its evidence by the folder as it is now, `--spec REV` by a commit"
    return AssayError(f"run {run.id} was judged with {what}, so no commit gives it again", fix=fix)


def _changed_programs(about: dict[str, str]) -> Iterator[str]:
    """Yield what judged then in another version than now."""
    for name, version in read_program_versions().items():
        if about.get(name, version) != version:
            yield f"{name} was {about[name]}, is {version}"
