"""Runs parts of the benchmark: those that only count side by side, then each of the others alone."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path

from bench.cost import SPREADS
from bench.measurement import Measurement
from bench.pace import measure_pace
from bench.parts import COUNTED, PARTS


@dataclass
class PartRun:
    """What a part measured. `broke_off`: the error that ended it early, "" for none."""

    name: str
    taken: list[Measurement] = field(default_factory=list)
    broke_off: str = ""


def run_parts(names: Sequence[str]) -> Iterator[PartRun]:
    """Run some parts. Each has a folder of its own, which is deleted at its end."""
    counted = [name for name in PARTS if name in names and name in COUNTED]
    if len(counted) > 1:
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
            yield from processes.map(run_part, counted)
    else:
        yield from map(run_part, counted)
    yield from map(run_part, (name for name in PARTS if name in names and name not in COUNTED))


def run_part(name: str) -> PartRun:
    """Run one part, print its measurements, and say on stderr how long it took with everything that it prepared.

    If it ends with an error, what it measured before still counts.
    """
    run, begun, before = PartRun(name), time.monotonic(), _cpu_s()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        try:
            for measurement in _pace(PARTS[name](Path(folder))):
                _print(measurement)
                run.taken.append(measurement)
        except Exception as error:
            traceback.print_exc()
            run.broke_off = f"{type(error).__name__}: {error}"
    took = f"{time.monotonic() - begun:.0f} s, {_cpu_s() - before:.0f} s of CPU time"
    print(f"{name} took {took}", file=sys.stderr, flush=True)  # noqa: T201 — for people
    return run


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _pace(measurements: Iterator[Measurement]) -> Iterator[Measurement]:
    """Yield each with the pace of the machine, before and after it (the faster counts), spread and load."""
    before = measure_pace()
    for taken in measurements:
        after = measure_pace()
        yield replace(taken, pace=min(before, after), spread=max(SPREADS, default=0.0), load=os.getloadavg()[0])
        SPREADS.clear()
        before = after


def _print(measurement: Measurement) -> None:
    """Print a line of JSON. If stdout goes to a file, also print the progress on stderr."""
    print(json.dumps(measurement.as_json(), ensure_ascii=False), flush=True)  # noqa: T201 — the answer
    if not sys.stdout.isatty():
        print(f"· {measurement.what}", file=sys.stderr, flush=True)  # noqa: T201 — progress
