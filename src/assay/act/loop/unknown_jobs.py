"""Keeps since when, and why, nobody knows which jobs a node has: its scheduler gave no answer, or does not know it.

    .assay/unknown-jobs.json
      NODE: {since: ISO 8601 UTC, reason}

The controller writes the file when something changes; `assay status` and `assay explain` read it. It may be deleted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `assay status` reads the file without the schedulers
    from assay.adapters.status_readings import StatusReadings

FILE_NAME = "unknown-jobs.json"
NOT_KNOWN_THERE = "its scheduler does not know this node"


@dataclass(frozen=True, slots=True)
class UnknownJobs:
    """That the jobs of a node are not known since a time (ISO 8601 UTC), and the last reason."""

    since: str
    reason: str


def read_unknown_jobs(folder: Path) -> dict[str, UnknownJobs]:
    """Return the nodes whose jobs are not known, by name. `folder` is the fleet's `.assay`."""
    try:
        content = json.loads((folder / FILE_NAME).read_text())
        return {node: UnknownJobs(**known) for node, known in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):  # none, or half of one: the next pass writes it anew
        return {}


def record_unknown_jobs(folder: Path, readings: StatusReadings, now: str, *, is_whole: bool) -> None:
    """Write down which nodes of a reading have unknown jobs.

    If the reading `is_whole`, nodes outside of it are forgotten: nothing is to be decided about them.
    """
    known = read_unknown_jobs(folder)
    unread = {name: readings.errors.get(name, NOT_KNOWN_THERE) for name in readings.nodes - readings.statuses.keys()}
    kept = {} if is_whole else {name: jobs for name, jobs in known.items() if name not in readings.nodes}
    changed = {name: UnknownJobs(known[name].since if name in known else now, unread[name]) for name in sorted(unread)}
    if kept | changed != known:
        _write(folder, kept | changed)


def _write(folder: Path, unknown: Mapping[str, UnknownJobs]) -> None:
    """Replace the file at once. A full disk must not stop a pass: what it decides does not need the file."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{FILE_NAME}.{os.getpid()}"
        draft.write_text(json.dumps({node: asdict(jobs) for node, jobs in unknown.items()}, indent=1))
        draft.replace(folder / FILE_NAME)
