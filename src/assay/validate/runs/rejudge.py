"""Judges a stored run again: by its own specs, which must give equal outcomes to the byte, or by other specs.

Specs and suites are extracted from a commit, and evidence is linked by its digest, into a temporary folder. Nothing is
recorded; the new run exists only inside `rejudge_run`.
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

from assay.declare.loader import load_fleet
from assay.declare.repository.git import REGULAR_MODES, read_git_objects, resolve_commit, run_git
from assay.declare.repository.tree import MAX_FILE_BYTES, CommitTree
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.run_manifest import PYTEST_SETTINGS, RunManifest, hash_folders, read_program_versions
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, find_object_path, read_digest, unpack_object
from assay.model.fleet import Fleet
from assay.model.outcome import SuiteRun
from assay.validate.items.suite_hooks import REJUDGED_RUN_VARIABLE
from assay.validate.results.paired_runs import RunEquality, compare_exactly
from assay.validate.runs.completeness import OutcomesByPool
from assay.validate.runs.run_validation import RunOptions, run_validation
from assay.validate.runs.shard_processes import LocalProcesses
from assay.validate.runs.sharding import RunShard

COMMIT_FOLDERS = ("inventory", "specs", "suites")
WORKING_FOLDER = "."
"""Instead of a revision: the working folder as it is."""


def extract_commit(root: Path, commit: str, into: Path) -> None:
    """Write inventory, specs, suites and pytest's settings of a commit to the folder `into`. Raises AssayError."""
    revision = CommitTree(root, commit)
    for path in (path for folder in COMMIT_FOLDERS for path in revision.files(folder)):
        _write(into / path, revision.read(path, MAX_FILE_BYTES))
    for path, content in _read_settings(root, commit).items():
        _write(into / path, content)


def link_evidence(evidence: Path, store: Path, documents: Mapping[str, str], into: Path) -> Path:
    """Return a folder of evidence with links to the `documents` (digest by name).

    A document is in `store` under its digest, or, if it was never stored, in the folder `evidence` that the run judged.
    For one that is gone or changed, the link leads nowhere, and checks that need it become errors.
    """
    latest, gone = into / "latest", into / "gone"
    latest.mkdir(parents=True)
    (into / "objects").symlink_to((store / "objects").resolve())
    for name, digest in documents.items():
        candidates = (find_object_path(store / "objects", digest), evidence / f"{name}.json")
        target = next((path.resolve() for path in candidates if _has_digest(path, digest)), gone / f"{digest}.json")
        (latest / f"{name}.json").symlink_to(target)
    return latest


def _has_digest(path: Path, digest: str) -> bool:
    """Return whether a file holds the document of this digest, in the store's form or another."""
    try:
        content = unpack_object(path.read_bytes())
        if hashlib.sha256(content).hexdigest() == digest:
            return True
        return read_digest(path) != digest and EvidenceDocument.from_json(json.loads(content)).digest() == digest
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _read_settings(root: Path, commit: str) -> dict[str, bytes]:
    """Return pytest's settings files in a commit."""
    listing = run_git(root, "ls-tree", "-z", commit, "--", *PYTEST_SETTINGS)
    objects = {}
    for line in listing.stdout.decode(errors="surrogateescape").split("\0"):
        status, _, path = line.partition("\t")
        if path and status.startswith(REGULAR_MODES):
            objects[path] = status.split()[2]
    contents = read_git_objects(root, sorted(set(objects.values()))) if objects else {}
    return {path: contents[name] for path, name in objects.items()}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@dataclass(frozen=True)
class RejudgedRun:
    """The file of a run (`old`), and of the same run judged again (`new`) by the specs of `rev`.

    `is_original_spec` says that `rev` is what the run was judged by. `programs` lists those with another version now.
    """

    old: Path
    new: Path
    rev: str
    is_original_spec: bool
    equality: RunEquality
    programs: tuple[str, ...]


class FixedClock:
    """A clock that stands at the start of a run, so that nothing expires that was valid then."""

    def __init__(self, at: str) -> None:
        self._at = datetime.fromisoformat(at)

    def now(self) -> datetime:
        """Return the start of the run."""
        return self._at

    def sleep(self, seconds: float) -> None:
        """Do nothing, since this clock stands."""


class RejudgeProcesses(LocalProcesses):
    """Local processes that see only the passes before a run in the ledger."""

    def __init__(self, jobs: int, run: str) -> None:
        super().__init__(jobs)
        self._run = run

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """Start the first shards; the others follow as these end."""
        limit = {REJUDGED_RUN_VARIABLE: self._run}
        limited = [replace(shard, environment={**shard.environment, **limit}) for shard in shards]
        super().start(limited, deadline_s)


@contextmanager
def rejudge_run(
    root: Path,
    file: Path,
    store: Path,
    rev: str = "",
    *,
    ledger: str = "",
    is_lab: bool = False,
    jobs: int = 1,
    progress: Callable[[OutcomesByPool], None] | None = None,
) -> Iterator[RejudgedRun]:
    """Judge the run in `file` again, on the evidence in `store`, with passes from `ledger` (path or URL).

    `rev` is a commit, WORKING_FOLDER for the folder `root` as it is, "" for the commit that the run was judged by. With
    `is_lab` the run and the ledger are the lab's: what only the lab may judge by, such as its golden digests, counts.
    Raises AssayError where the run was not judged by a commit, or where there is nothing to judge. `progress` receives
    the progress.
    """
    with StoredRun.open_whole(file) as stored:
        manifest = RunManifest.read(stored)
        documents = stored.documents()
        about = stored.about
    with tempfile.TemporaryDirectory(prefix="assay-rejudge-") as scratch:
        home = Path(scratch)
        fleet = _load_fleet_of(root, manifest, rev, home / "fleet", is_lab=is_lab)
        digests = {name: digest for name, (digest, _) in documents.items()}
        evidence = link_evidence(manifest.evidence, store, digests, home)
        result = run_validation(
            fleet,
            evidence,
            nodes=manifest.run.nodes,
            phases=manifest.run.phases,
            reports=home / "reports",
            ledger=None,
            clock=FixedClock(manifest.run.at),
            extra=manifest.extra,
            options=RunOptions(RejudgeProcesses(jobs, manifest.run.id), progress=progress, baseline=ledger),
        )
        result.stored.close()
        new, run = result.stored.path, manifest.run
        name = "the working folder" if rev == WORKING_FOLDER else rev or f"commit {run.spec_commit[:12]}"
        is_original = not rev or (
            rev != WORKING_FOLDER and resolve_commit(root, rev) == run.spec_commit and not run.dirty
        )
        programs = [
            f"{program} was {about[program]}, is {version}"
            for program, version in read_program_versions().items()
            if about.get(program, version) != version
        ]
        yield RejudgedRun(file, new, name, is_original, compare_exactly(file, new), tuple(programs))


def _load_fleet_of(root: Path, manifest: RunManifest, rev: str, into: Path, *, is_lab: bool) -> Fleet:
    """Return the fleet of a revision, extracted to a folder, without addresses of a lab. Raises AssayError."""
    run, overlays = manifest.run, () if is_lab else None
    if rev == WORKING_FOLDER:
        return load_fleet(root, overlays)
    if not rev and (run.dirty or not run.spec_commit):
        raise _no_commit_error(run, "uncommitted changes" if run.dirty else "a folder without git")
    extract_commit(root, resolve_commit(root, rev or run.spec_commit), into)
    if not rev and hash_folders(into / "suites") != run.suite_hash:
        raise _no_commit_error(run, "files in suites/ that git does not track")
    return load_fleet(into, overlays)


def _no_commit_error(run: SuiteRun, state: str) -> AssayError:
    fix = "`--spec .` judges its evidence by the folder as it is now, `--spec REV` by a commit"
    return AssayError(f"run {run.id} was judged with {state}, so no commit reproduces it", fix=fix)
