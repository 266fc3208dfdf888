"""Which runs came before one, and which of them it can be compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from assay.harness.store.read import Stored
from assay.model.errors import Trouble
from assay.model.outcome import Run

LOOK_BACK = 50


def earlier(runs: Sequence[Path], run: Path) -> list[Path]:
    """Return the runs before one, oldest first."""
    return [one for one in runs if one.parent.name < run.parent.name]


def comparable(before: Sequence[Path], run: Path) -> Path:
    """Return the newest run before that ended and was asked for as much: the same phases, at least the same nodes.

    Where there is none, the one just before. Raises Trouble where there is none at all.
    """
    if not before:
        fix = "`assay results --list` shows the runs; `--against` names one"
        raise Trouble(f"there is no run before {run.parent.name}", fix=fix)
    asked, _ = _asked(run)
    for one in reversed(before[-LOOK_BACK:]):
        other, ended = _asked(one)
        if ended and set(other.phases) == set(asked.phases) and set(other.nodes) >= set(asked.nodes):
            return one
    return before[-1]


def newest_first(runs: Sequence[Path]) -> Iterator[Stored]:
    """Open so many of the newest runs one after the other, newest first; what cannot be read is passed over."""
    for path in reversed(runs[-LOOK_BACK:]):
        try:
            stored = Stored.open(path)
        except Trouble:
            continue
        with stored:
            yield stored


def _asked(path: Path) -> tuple[Run, bool]:
    with Stored.open(path) as stored:
        return stored.run, "ended" in stored.about
