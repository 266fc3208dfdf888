"""What a run begins with: when, by whom, of which nodes, specs and suites, with which programs."""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from assay.model.fleet import Fleet
from assay.model.outcome import Run

PACKAGE = "assay-fleet"


def begun(fleet: Fleet, nodes: Iterable[str], phases: Collection[str], at: datetime) -> Run:
    """Return a new run of these nodes in these phases. Its id begins with its time, so that runs sort by age."""
    return Run(
        id=f"{at:%Y%m%dT%H%M%S.%f}"[:-3] + f"-{uuid.uuid4().hex[:6]}",
        at=at.isoformat(),
        phases=tuple(sorted(phases)),
        nodes=tuple(nodes),
        spec_commit=fleet.commit,
        dirty=fleet.dirty,
        suite_hash=content_hash(fleet.root / "suites"),
        who=_who(),
    )


def versions() -> Mapping[str, str]:
    """Return the versions of what judges, by name."""
    return {"assay": version(PACKAGE), "python": platform.python_version(), "pytest": version("pytest")}


def content_hash(*folders: Path) -> str:
    """Return the sha256 over the names and contents of everything below some folders."""
    summed = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                summed.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
                summed.update(path.read_bytes())
    return summed.hexdigest()


def _who() -> str:
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
