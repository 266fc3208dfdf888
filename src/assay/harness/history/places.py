"""Where history lies: `TABLE/day=2026-11-21/RUN.parquet`, every table a Parquet data set for any tool.

A file is written elsewhere and renamed when it is whole; a run that every table has is kept. Files of a day may have
become one, `all-NAME.parquet`, which lists its runs in `all-NAME.runs`; what another file holds as well is not read.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

OUTCOMES, MEASUREMENTS, ARTEFACTS, RUNS = "outcomes", "measurements", "artefacts", "runs"
TABLES = (RUNS, ARTEFACTS, MEASUREMENTS, OUTCOMES)
DAY, MADE_ONE = "day=", "all-"
MAKING, LOCK = ".making", ".lock"


class File(NamedTuple):
    """A file of a table, and the runs that it holds."""

    path: Path
    runs: frozenset[str]


def home(reports: Path) -> Path:
    """Return where the history of a fleet lies, below its reports."""
    return reports / "history"


def folder(home: Path, table: str, at: str) -> Path:
    """Return the folder of the day of `at` (ISO 8601), which is a day of UTC."""
    return home / table / f"{DAY}{datetime.fromisoformat(at).astimezone(UTC).date()}"


def days(home: Path, table: str, since: date = date.min) -> list[Path]:
    """Return the folders of a table's days from `since` on, oldest first."""
    place = home / table
    if not place.is_dir():
        return []
    names = sorted(one.name for one in os.scandir(place) if one.name.startswith(DAY))
    return [place / name for name in names if name.removeprefix(DAY) >= since.isoformat()]


def files(day: Path) -> list[File]:
    """Return the files that hold a day's runs, each run once; the greatest first."""
    found, held = [], set[str]()
    for file in sorted(map(_file, _whole(day)), key=lambda file: (-len(file.runs), file.path.name)):
        if not file.runs <= held:
            found.append(file)
            held |= file.runs
    return found


def superseded(day: Path) -> list[Path]:
    """Return the files whose runs another one holds, as a kill in the middle of making them one leaves them."""
    read = {file.path for file in files(day)}
    return [path for path in _whole(day) if path not in read]


def runs(day: Path) -> set[str]:
    """Return the ids of the runs that a day holds."""
    return {run for path in _whole(day) for run in _file(path).runs}


def all_runs(home: Path, table: str) -> set[str]:
    """Return the ids of the runs that a table holds."""
    return {run for day in days(home, table) for run in runs(day)}


@contextmanager
def writing(home: Path) -> Iterator[Path]:
    """Be the only one who writes below `home`; give a folder to make files in, which was emptied of a killed one's."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        making = home / MAKING
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        try:
            yield making
        finally:
            shutil.rmtree(making, ignore_errors=True)


def place(made: Path, path: Path) -> None:
    """Put a file that is whole in its place, safe from a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    made.replace(path)


def _whole(day: Path) -> list[Path]:
    if not day.is_dir():
        return []
    return [day / one.name for one in os.scandir(day) if one.name.endswith(".parquet")]


def _file(path: Path) -> File:
    if not path.name.startswith(MADE_ONE):
        return File(path, frozenset([path.stem]))
    return File(path, frozenset(path.with_suffix(".runs").read_text().split()))
