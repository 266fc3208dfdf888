"""`make bench`: measures what should be fast, each figure against its bound.

Prints one JSON line a measurement on stdout; progress and a table for people on stderr. Exit code 1: a bound does not
hold. At the end of a part, stderr says how long it took. `python -m bench fabric` runs one part of `PARTS`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bench import (
    agent,
    big,
    big_bmcs,
    bmcs,
    burn_in,
    collectives,
    cordon,
    corruption,
    fabric,
    faults,
    harness,
    history,
    idle_cost,
    kubernetes,
    ledger,
    load,
    metrics,
    million,
    observing,
    playbooks,
    quiet,
    replay,
    report,
    results,
    rollout,
    starting,
    sync,
    trend_cost,
    trend_forecasts,
    trend_replays,
    trends,
    viewers,
    week,
)
from bench.measurement import Measurement
from bench.pace import measure_pace
from bench.table import format_table

PARTS: dict[str, Callable[[Path], Iterator[Measurement]]] = {
    "starting": starting.measurements,
    "bmcs": bmcs.measurements,
    "big_bmcs": big_bmcs.measurements,
    "big": big.measurements,
    "fabric": fabric.measurements,
    "collectives": collectives.measurements,
    "corruption": corruption.measurements,
    "harness": harness.measurements,
    "million": million.measurements,
    "replay": replay.measurements,
    "report": report.measurements,
    "results": results.measurements,
    "burn-in": burn_in.measurements,
    "load": load.measurements,
    "sync": sync.measurements,
    "trends": trends.measurements,
    "trend-cost": trend_cost.measurements,
    "trend-forecasts": trend_forecasts.measurements,
    "trend-sets": trend_replays.measurements,
    "history": history.measurements,
    "faults": faults.measurements,
    "week": week.measurements,
    "ledger": ledger.measurements,
    "agent": agent.measurements,
    "observing": observing.measurements,
    "playbooks": playbooks.measurements,
    "quiet": quiet.measurements,
    "metrics": metrics.measurements,
    "viewers": viewers.measurements,
    "cordon": cordon.measurements,
    "rollout": rollout.measurements,
    "kubernetes": kubernetes.measurements,
    "idle_cost": idle_cost.measurements,
}


def main(names: list[str]) -> int:
    """Run the named parts, or all; print the measurements and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        taken = [measurement for name in names or PARTS for measurement in _measure_part(name, Path(folder))]
    print(format_table(taken), file=sys.stderr)  # noqa: T201 — for people
    return 0 if all(measurement.holds for measurement in taken) else 1


def _measure_part(name: str, folder: Path) -> Iterator[Measurement]:
    """Measure a part. At its end, say how long it took, with everything that it prepared."""
    begun, before = time.monotonic(), _cpu_s()
    yield from _print_each(PARTS[name](folder))
    took = f"{time.monotonic() - begun:.0f} s, {_cpu_s() - before:.0f} s of CPU time"
    print(f"{name} took {took}", file=sys.stderr, flush=True)  # noqa: T201 — for people


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _print_each(measurements: Iterator[Measurement]) -> Iterator[Measurement]:
    """Print each measurement as it is taken. If stdout goes to a file, also print the progress on stderr.

    The pace of the machine is measured before and after each; the faster one counts.
    """
    before = measure_pace()
    for taken in measurements:
        after = measure_pace()
        measurement, before = replace(taken, pace=min(before, after)), after
        print(json.dumps(measurement.as_json(), ensure_ascii=False), flush=True)  # noqa: T201 — the answer
        if not sys.stdout.isatty():
            print(f"· {measurement.what}", file=sys.stderr, flush=True)  # noqa: T201 — progress
        yield measurement


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
