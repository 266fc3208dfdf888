"""The runs before a run: all, the one that compares best with it, and the newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from assay.ledger.runs.reader import StoredRun
from assay.model.errors import AssayError

MAX_LOOK_BACK = 50


def list_earlier_runs(runs: Sequence[Path], run: Path) -> list[Path]:
    """Return the runs before `run`, oldest first."""
    return [other for other in runs if other.parent.name < run.parent.name]


def find_comparable_run(
    earlier: Sequence[Path], run: Path, skipped: Callable[[AssayError], None] = lambda _: None
) -> Path:
    """Return the newest earlier run that has ended, with the same phases and at least the same nodes as `run`.

    Where there is none, return the newest earlier run. `skipped` receives the error of each damaged run. Raises
    AssayError where no run is earlier, or none can be read.
    """
    if not earlier:
        fix = "`assay results --list` shows the runs; `--against` names one"
        raise AssayError(f"there is no run before {run.parent.name}", fix=fix)
    with StoredRun.open_whole(run) as stored:
        phases, nodes = set(stored.run.phases), set(stored.run.nodes)
    readable: list[Path] = []
    for path in reversed(earlier[-MAX_LOOK_BACK:]):
        try:
            with StoredRun.open_whole(path) as stored:
                readable.append(path)
                if stored.has_ended and set(stored.run.phases) == phases and set(stored.run.nodes) >= nodes:
                    return path
        except AssayError as error:
            skipped(error)
    if not readable:
        raise AssayError(f"no run before {run.parent.name} can be read", fix="`--against` names another one")
    return readable[0]


def open_newest_first(runs: Sequence[Path]) -> Iterator[StoredRun]:
    """Yield the newest runs, newest first, each open until the next; runs that cannot be read are skipped."""
    for path in reversed(runs[-MAX_LOOK_BACK:]):
        try:
            stored = StoredRun.open(path)
        except AssayError:
            continue
        with stored:
            yield stored
