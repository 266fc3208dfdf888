"""Finds runs: all of a reports folder, or the one that a person names."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from assay.model.errors import AssayError

RUN_FILE = "run.sqlite"
_LAST_NAME = re.compile(r"last(?:~(\d+))?")


def list_runs(reports: Path) -> list[Path]:
    """Return the file of every run in `reports`, oldest first, since a run's id starts with its time."""
    return sorted((reports / "runs").glob(f"*/{RUN_FILE}"))


def find_run(reports: Path, name: str) -> Path:
    """Return the file of a run, named by its id, the start of its id, `last`, or `last~1` for the one before.

    Raises AssayError where no run or more than one has that name.
    """
    runs = list_runs(reports)
    if not runs:
        raise AssayError(f"there is no run in {reports / 'runs'}", fix="run `assay validate` first")
    if last_name := _LAST_NAME.fullmatch(name):
        back = int(last_name[1] or 0)
        if back >= len(runs):
            fix = f"there are {len(runs)}; the oldest is last~{len(runs) - 1}"
            raise AssayError(f"there is no run {name}", fix=fix)
        return runs[-1 - back]
    by_id = {run.parent.name: run for run in runs}
    matching = [by_id[name]] if name in by_id else [run for key, run in by_id.items() if name and key.startswith(name)]
    if len(matching) > 1:
        raise AssayError(
            f"{len(matching)} runs begin with {name}", fix=f"give more of it: {matching[0].parent.name}, …"
        )
    if not matching:
        near = get_close_matches(name, by_id, n=2, cutoff=0.3) or [runs[-1].parent.name]
        fix = f"did you mean {' or '.join(near)}? `last` and `last~1` work too"
        raise AssayError(f"there is no run {name}", fix=fix)
    return matching[0]
