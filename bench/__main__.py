"""`make bench`: measures what should be fast, each figure against its bound.

Prints one JSON line a measurement on stdout; progress and a table for people on stderr. Exit code 1: a bound does not
hold. A run takes some minutes, mostly for Ansible. `python -m bench fabric` runs one part of `PARTS`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import (
    agent,
    big,
    bmcs,
    cordon,
    fabric,
    faults,
    harness,
    history,
    kubernetes,
    ledger,
    million,
    observing,
    playbooks,
    quiet,
    replay,
    report,
    results,
    starting,
    sync,
    week,
)
from bench.measurement import Measurement
from bench.table import format_table

PARTS: dict[str, Callable[[Path], Iterator[Measurement]]] = {
    "starting": starting.measurements,
    "bmcs": bmcs.measurements,
    "big": big.measurements,
    "fabric": fabric.measurements,
    "harness": harness.measurements,
    "million": million.measurements,
    "replay": replay.measurements,
    "report": report.measurements,
    "results": results.measurements,
    "sync": sync.measurements,
    "history": history.measurements,
    "faults": faults.measurements,
    "week": week.measurements,
    "ledger": ledger.measurements,
    "agent": agent.measurements,
    "observing": observing.measurements,
    "playbooks": playbooks.measurements,
    "quiet": quiet.measurements,
    "cordon": cordon.measurements,
    "kubernetes": kubernetes.measurements,
}


def main(names: list[str]) -> int:
    """Run the named parts, or all; print the measurements and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        taken = [measurement for name in names or PARTS for measurement in _print_each(PARTS[name](Path(folder)))]
    print(format_table(taken), file=sys.stderr)  # noqa: T201 — for people
    return 0 if all(measurement.holds for measurement in taken) else 1


def _print_each(measurements: Iterator[Measurement]) -> Iterator[Measurement]:
    """Print each measurement as it is taken. If stdout goes to a file, also print the progress on stderr."""
    for measurement in measurements:
        print(json.dumps(measurement.as_json(), ensure_ascii=False), flush=True)  # noqa: T201 — the answer
        if not sys.stdout.isatty():
            print(f"· {measurement.what}", file=sys.stderr, flush=True)  # noqa: T201 — progress
        yield measurement


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
