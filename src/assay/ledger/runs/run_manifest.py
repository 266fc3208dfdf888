"""What a run was asked to do, as its file stores it: enough to resume the run, or to refuse where inputs changed.

`create_run` makes a new run's identity: time, user, nodes, specs and suites.
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

from assay.ledger.runs.reader import FRESH_HOURS_KEY, StoredRun
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.outcome import SuiteRun

PACKAGE_NAME = "assay-fleet"
PYTEST_INI_FILES = (
    "pytest.ini",
    "pytest.toml",
    ".pytest.ini",
    ".pytest.toml",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
PYTEST_SETTINGS = (*PYTEST_INI_FILES, "conftest.py")
"""Files at the root of a fleet repository where pytest looks for settings."""
NEW_RUN_FIX = "start a new run: assay validate"


def create_run(fleet: Fleet, nodes: Iterable[str], phases: Collection[str], at: datetime) -> SuiteRun:
    """Return a new run of these nodes in these phases. Its id starts with its time, so that runs sort by age."""
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
    """Return the versions of the programs that judge, by name."""
    return {"assay": version(PACKAGE_NAME), "python": platform.python_version(), "pytest": version("pytest")}


def hash_folders(*folders: Path) -> str:
    """Return the sha256 over the names and contents of all files in these folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _user_name() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def hash_pytest_settings(root: Path) -> dict[str, str]:
    """Return the sha256 of each file outside `suites/` that may set how pytest judges, by name.

    pytest looks for its settings in the folders above the repository, too.
    """
    above = [folder / name for folder in root.resolve().parents for name in PYTEST_INI_FILES]
    files = {name: root / name for name in PYTEST_SETTINGS} | {str(path): path for path in above}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.is_file()}


@dataclass(frozen=True)
class RunManifest:
    """One run: the folder of its evidence, further arguments of pytest (`extra`), and the number of its shards.

    The digests are of specs and evidence when it started. `user_selection` is the selection as the user wrote it,
    `settings` the digests of pytest's settings by file. `fresh_hours` is the greatest age of the evidence of a pass, by
    check.
    """

    run: SuiteRun
    evidence: Path
    extra: tuple[str, ...]
    shards: int
    specs_digest: str
    evidence_digest: str
    user_selection: str
    settings: Mapping[str, str]
    fresh_hours: Mapping[str, float]

    @classmethod
    def create(
        cls,
        fleet: Fleet,
        run: SuiteRun,
        evidence: Path,
        extra: Sequence[str],
        shards: int,
        user_selection: str,
        fresh_hours: Mapping[str, float],
    ) -> RunManifest:
        """Return the manifest of a new run."""
        digests = _hash_specs(fleet), _hash_evidence(fleet, evidence, run.nodes)
        settings = hash_pytest_settings(fleet.root)
        return cls(run, evidence, tuple(extra), shards, *digests, user_selection, settings, fresh_hours)

    @classmethod
    def read(cls, stored: StoredRun) -> RunManifest:
        """Return the manifest of a started run. Raises AssayError for a file that `assay validate` did not write."""
        about = stored.about
        if "shards" not in about:
            raise AssayError("was not made by `assay validate`", where=str(stored.path), fix=NEW_RUN_FIX)
        return cls(
            stored.run,
            Path(about["evidence"]),
            tuple(json.loads(about["extra"])),
            int(about["shards"]),
            about["specs"],
            about["seen"],
            about["selection"],
            json.loads(about["settings"]),
            json.loads(about[FRESH_HOURS_KEY]),
        )

    def as_about(self) -> Mapping[str, str]:
        """Return the entries of the table `about` of the run's file."""
        return {
            **read_program_versions(),
            "evidence": str(self.evidence),
            "extra": json.dumps(self.extra, ensure_ascii=False),
            "shards": str(self.shards),
            "specs": self.specs_digest,
            "seen": self.evidence_digest,
            "selection": self.user_selection,
            "settings": json.dumps(self.settings, ensure_ascii=False),
            FRESH_HOURS_KEY: json.dumps(self.fresh_hours),
        }

    def require_unchanged(self, fleet: Fleet) -> None:
        """Raise AssayError where specs, suites or evidence are not those that the run started with."""
        inputs = {
            "the spec commit": (self.run.spec_commit, fleet.commit),
            "the specs": (self.specs_digest, _hash_specs(fleet)),
            "the suites": (self.run.suite_hash, hash_folders(fleet.root / "suites")),
            "the evidence": (self.evidence_digest, _hash_evidence(fleet, self.evidence, self.run.nodes)),
        }
        present = hash_pytest_settings(fleet.root)
        for name in {**self.settings, **present}:
            inputs[name] = self.settings.get(name, ""), present.get(name, "")
        for name, (then, now) in inputs.items():
            if then != now:
                change = f" from {then[:12]} to {now[:12]}" if name == "the spec commit" else ""
                problem = f"{name} changed{change} since run {self.run.id} started"
                raise AssayError(problem, fix=f"change it back, or {NEW_RUN_FIX}")


def _hash_specs(fleet: Fleet) -> str:
    return hash_folders(fleet.root / "inventory", fleet.root / "specs")


def _hash_evidence(fleet: Fleet, evidence: Path, nodes: Collection[str]) -> str:
    """Return a digest of the documents of these nodes and of all fabrics: name, time and size of each file."""
    selected, digest = set(nodes), hashlib.sha256()
    for path in sorted(evidence.glob("*.json")):
        if (path.stem in selected or path.stem not in fleet.nodes) and path.exists():
            status = path.stat()
            digest.update(f"{path.name} {status.st_mtime_ns} {status.st_size}\n".encode())
    return digest.hexdigest()
