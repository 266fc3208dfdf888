"""Which runs there are, and which of them a person means."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from assay.model.errors import Trouble

FILE = "run.sqlite"
_BACK = re.compile(r"last(?:~(\d+))?")


def all_runs(reports: Path) -> list[Path]:
    """Return the file of every run below `reports`, oldest first: a run's id begins with its time."""
    return sorted((reports / "runs").glob(f"*/{FILE}"))


def find(reports: Path, name: str) -> Path:
    """Return the file of the run that is meant by its id, by how that begins, or by `last` and `last~1`.

    Raises Trouble where none is, or more than one.
    """
    runs = all_runs(reports)
    if not runs:
        raise Trouble(f"there is no run in {reports / 'runs'}", fix="run `assay validate` first")
    if back := _BACK.fullmatch(name):
        ago = int(back[1] or 0)
        if ago >= len(runs):
            raise Trouble(f"there is no run {name}", fix=f"there are {len(runs)}; the oldest is last~{len(runs) - 1}")
        return runs[-1 - ago]
    named = {run.parent.name: run for run in runs}
    meant = [named[name]] if name in named else [run for id_, run in named.items() if name and id_.startswith(name)]
    if len(meant) > 1:
        raise Trouble(f"{len(meant)} runs begin with {name}", fix=f"say more: {meant[0].parent.name}, …")
    if not meant:
        near = get_close_matches(name, named, n=2, cutoff=0.3) or [runs[-1].parent.name]
        raise Trouble(f"there is no run {name}", fix=f"did you mean {' or '.join(near)}? `last` and `last~1` work too")
    return meant[0]
