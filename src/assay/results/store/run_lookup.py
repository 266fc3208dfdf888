"""Which runs came before one, and which of them it can be compared with.

Which runs there are, and which of them a person means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.outcome import SuiteRun
from assay.results.store.reader import StoredRun

MAX_LOOK_BACK = 50


def list_earlier_runs(runs: Sequence[Path], run: Path) -> list[Path]:
    """Return the runs before one, oldest first."""
    return [one for one in runs if one.parent.name < run.parent.name]


def find_comparable_run(before: Sequence[Path], run: Path) -> Path:
    """Return the newest run before that ended and was asked for as much: the same phases, at least the same nodes.

    Where there is none, the one just before. Raises Trouble where there is none at all.
    """
    if not before:
        fix = "`assay results --list` shows the runs; `--against` names one"
        raise AssayError(f"there is no run before {run.parent.name}", fix=fix)
    asked, _ = _read_request(run)
    for one in reversed(before[-MAX_LOOK_BACK:]):
        other, ended = _read_request(one)
        if ended and set(other.phases) == set(asked.phases) and set(other.nodes) >= set(asked.nodes):
            return one
    return before[-1]


def open_newest_first(runs: Sequence[Path]) -> Iterator[StoredRun]:
    """Open so many of the newest runs one after the other, newest first; what cannot be read is passed over."""
    for path in reversed(runs[-MAX_LOOK_BACK:]):
        try:
            stored = StoredRun.open(path)
        except AssayError:
            continue
        with stored:
            yield stored


def _read_request(path: Path) -> tuple[SuiteRun, bool]:
    with StoredRun.open(path) as stored:
        return stored.run, "ended" in stored.about


RUN_FILE = "run.sqlite"
_BACK = re.compile(r"last(?:~(\d+))?")


def list_runs(reports: Path) -> list[Path]:
    """Return the file of every run below `reports`, oldest first: a run's id begins with its time."""
    return sorted((reports / "runs").glob(f"*/{RUN_FILE}"))


def find_run(reports: Path, name: str) -> Path:
    """Return the file of the run that is meant by its id, by how that begins, or by `last` and `last~1`.

    Raises Trouble where none is, or more than one.
    """
    runs = list_runs(reports)
    if not runs:
        raise AssayError(f"there is no run in {reports / 'runs'}", fix="run `assay validate` first")
    if back := _BACK.fullmatch(name):
        ago = int(back[1] or 0)
        if ago >= len(runs):
            raise AssayError(
                f"there is no run {name}", fix=f"there are {len(runs)}; the oldest is last~{len(runs) - 1}"
            )
        return runs[-1 - ago]
    named = {run.parent.name: run for run in runs}
    meant = [named[name]] if name in named else [run for id_, run in named.items() if name and id_.startswith(name)]
    if len(meant) > 1:
        raise AssayError(f"{len(meant)} runs begin with {name}", fix=f"say more: {meant[0].parent.name}, …")
    if not meant:
        near = get_close_matches(name, named, n=2, cutoff=0.3) or [runs[-1].parent.name]
        raise AssayError(
            f"there is no run {name}", fix=f"did you mean {' or '.join(near)}? `last` and `last~1` work too"
        )
    return meant[0]
