"""Finds runs: all of a reports folder, the one that a person names, and an earlier one to compare with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from assay.model.errors import AssayError
from assay.results.store.reader import StoredRun

RUN_FILE = "run.sqlite"
MAX_LOOK_BACK = 50
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


def list_earlier_runs(runs: Sequence[Path], run: Path) -> list[Path]:
    """Return the runs before `run`, oldest first."""
    return [other for other in runs if other.parent.name < run.parent.name]


def find_comparable_run(earlier: Sequence[Path], run: Path) -> Path:
    """Return the newest earlier run that has ended, with the same phases and at least the same nodes as `run`.

    Where there is none, return the newest earlier run. Raises AssayError where no run is earlier.
    """
    if not earlier:
        fix = "`assay results --list` shows the runs; `--against` names one"
        raise AssayError(f"there is no run before {run.parent.name}", fix=fix)
    with StoredRun.open(run) as stored:
        phases, nodes = set(stored.run.phases), set(stored.run.nodes)
    for path in reversed(earlier[-MAX_LOOK_BACK:]):
        with StoredRun.open(path) as stored:
            if stored.has_ended and set(stored.run.phases) == phases and set(stored.run.nodes) >= nodes:
                return path
    return earlier[-1]


def open_newest_first(runs: Sequence[Path]) -> Iterator[StoredRun]:
    """Yield the newest runs, newest first, each open until the next; runs that cannot be read are skipped."""
    for path in reversed(runs[-MAX_LOOK_BACK:]):
        try:
            stored = StoredRun.open(path)
        except AssayError:
            continue
        with stored:
            yield stored
