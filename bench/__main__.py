"""`make bench`: what should be fast, each against its bound, measured in one run.

One JSON line a measurement on stdout; progress and a table for people on stderr. Exit code 1 when a bound does not
hold. A run takes some minutes: Ansible's share of it is most. `python -m bench fabric` runs one part (see PARTS).
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
    week,
)
from bench.measurement import Measurement
from bench.table import told

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
    """Measure the parts named, or all; print, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        taken = [said for name in names or PARTS for said in _told(PARTS[name](Path(folder)))]
    print(told(taken), file=sys.stderr)  # noqa: T201 — for people
    return 0 if all(one.holds for one in taken) else 1


def _told(measurements: Iterator[Measurement]) -> Iterator[Measurement]:
    """Print each measurement as it is taken; people who keep the answer in a file see that it goes on."""
    for one in measurements:
        print(json.dumps(one.as_json(), ensure_ascii=False), flush=True)  # noqa: T201 — the answer
        if not sys.stdout.isatty():
            print(f"· {one.what}", file=sys.stderr, flush=True)  # noqa: T201 — progress
        yield one


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
