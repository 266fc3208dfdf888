"""What a run was told to do, as its file says it: enough to go on with it, and to refuse where that is not possible.

What a run begins with: when, by whom, of which nodes, specs and suites, with which programs.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import platform
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import SuiteRun
from assay.results.store.reader import StoredRun

PACKAGE_NAME = "assay-fleet"


def create_run(fleet: Fleet, nodes: Iterable[str], phases: Collection[str], at: datetime) -> SuiteRun:
    """Return a new run of these nodes in these phases. Its id begins with its time, so that runs sort by age."""
    return SuiteRun(
        id=f"{at:%Y%m%dT%H%M%S.%f}"[:-3] + f"-{uuid.uuid4().hex[:6]}",
        at=at.isoformat(),
        phases=tuple(sorted(phases)),
        nodes=tuple(nodes),
        spec_commit=fleet.commit,
        dirty=fleet.dirty,
        suite_hash=hash_folders(fleet.root / "suites"),
        who=_user_name(),
    )


def read_program_versions() -> Mapping[str, str]:
    """Return the versions of what judges, by name."""
    return {"assay": version(PACKAGE_NAME), "python": platform.python_version(), "pytest": version("pytest")}


def hash_folders(*folders: Path) -> str:
    """Return the sha256 over the names and contents of everything below some folders."""
    summed = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                summed.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
                summed.update(path.read_bytes())
    return summed.hexdigest()


def _user_name() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


ENDED_KEY = "ended"
"""Says of a run that it came to its end: `whole`, or `in part` where shards were lost or late."""
ENDED_WHOLE, ENDED_IN_PART = "whole", "in part"
NEW_RUN_FIX = "begin a new run: assay validate"


@dataclass(frozen=True)
class RunManifest:
    """One run, the folder of `evidence` that it judges, what pytest is told on top, and into how many shards it is cut.

    `specs` and `seen` are digests of the specs and of the evidence when it began, `typed` what a person asked for.
    """

    run: SuiteRun
    evidence: Path
    extra: tuple[str, ...]
    shards: int
    specs_digest: str
    evidence_digest: str
    user_selection: str = ""

    @classmethod
    def create(
        cls, fleet: Fleet, run: SuiteRun, evidence: Path, extra: Sequence[str], shards: int, typed: str
    ) -> RunManifest:
        """Return the order of a new run."""
        return cls(
            run, evidence, tuple(extra), shards, _hash_specs(fleet), _hash_evidence(fleet, evidence, run.nodes), typed
        )

    @classmethod
    def read(cls, stored: StoredRun) -> RunManifest:
        """Return the order of a run that has begun. Raises Trouble for a file that no `assay validate` has made."""
        about = stored.about
        if "shards" not in about:
            raise AssayError("was not made by `assay validate`", where=str(stored.path), fix=NEW_RUN_FIX)
        extra = tuple(json.loads(about["extra"]))
        typed = about.get("selection", "")
        words = Path(about["evidence"]), extra, int(about["shards"]), about["specs"], about["seen"], typed
        return cls(stored.run, *words)

    def as_about(self) -> Mapping[str, str]:
        """Return the order for the run's file."""
        return {
            **read_program_versions(),
            "evidence": str(self.evidence),
            "extra": json.dumps(self.extra, ensure_ascii=False),
            "shards": str(self.shards),
            "specs": self.specs_digest,
            "seen": self.evidence_digest,
            "selection": self.user_selection,
        }

    def require_unchanged(self, fleet: Fleet) -> None:
        """Raise Trouble where going on would judge by other specs, suites or evidence than the run began with."""
        now = {
            "the spec commit": (self.run.spec_commit, fleet.commit),
            "the specs": (self.specs_digest, _hash_specs(fleet)),
            "the suites": (self.run.suite_hash, hash_folders(fleet.root / "suites")),
            "the evidence": (self.evidence_digest, _hash_evidence(fleet, self.evidence, self.run.nodes)),
        }
        for what, (then, found) in now.items():
            if then != found:
                was = f" from {then[:12]} to {found[:12]}" if what == "the spec commit" else ""
                raise AssayError(
                    f"{what} changed{was} since run {self.run.id} began", fix=f"change it back, or {NEW_RUN_FIX}"
                )


def _hash_specs(fleet: Fleet) -> str:
    return hash_folders(fleet.root / "inventory", fleet.root / "specs")


def _hash_evidence(fleet: Fleet, evidence: Path, nodes: Collection[str]) -> str:
    """Return a digest of which documents there are of these nodes, and of what is no node: each change makes a file."""
    chosen, summed = set(nodes), hashlib.sha256()
    for path in sorted(evidence.glob("*.json")):
        if (path.stem in chosen or path.stem not in fleet.nodes) and path.exists():
            about = path.stat()
            summed.update(f"{path.name} {about.st_mtime_ns} {about.st_size}\n".encode())
    return summed.hexdigest()
