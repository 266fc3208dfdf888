"""The cost of a million outcomes in shards, compared with ten times 100,000 in one pytest: time, memory, bytes.

`python -m bench.million FLEET` judges a fleet in shards, two at a time, without a ledger.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from assay.fleet.fleet_loader import load_fleet
from assay.harness.runs.run_validation import run_validation
from assay.model.clock import SystemClock
from assay.results.store.run_lookup import find_run
from bench.cost import cost
from bench.harness import ENDED, PEAK_MB, PHASES, PYTEST
from bench.judged import JUDGED, counts_of, evidence, small_fleet
from bench.measurement import Measurement
from bench.programs import ROOT

SMALL, BIG = 159, 1590
"""Nodes: 100,000 and a million outcomes."""
TIMES, BYTES = 1.15, 80.0
JOBS = 2


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure two fleets below `folder`; 2 % of their outcomes fail."""
    few, many = (_make_fleet(folder / f"{nodes}", nodes) for nodes in (SMALL, BIG))
    store = few / "own.sqlite"
    before = _pytest_seconds(few, store)
    shards = cost([sys.executable, "-m", "bench.million", str(many)], ROOT, times=1)
    pytest_s = (before + _pytest_seconds(few, store)) / 2  # before and after, since other load changes
    run = find_run(many / "reports", "last")
    few_outcomes, outcomes = _count_judged(store), _count_judged(run)
    each, alone = shards.cpu_s / outcomes, pytest_s / few_outcomes
    what = f"{outcomes:,} outcomes in shards"
    parts = {"cpu_s": shards.cpu_s, "against_cpu_s": pytest_s, "against_outcomes": few_outcomes}
    yield Measurement(f"{what} / pytest, {few_outcomes:,}: CPU an outcome", each / alone, "×", "at most", TIMES, parts)
    yield Measurement(f"{what}: the largest process", shards.peak_mb, "MB", "at most", PEAK_MB)
    yield Measurement(f"{what}: their store", run.stat().st_size / outcomes, "B/outcome", "at most", BYTES)


def _pytest_seconds(fleet: Path, store: Path) -> float:
    """Return the CPU seconds of one pytest over a fleet."""
    store.unlink(missing_ok=True)
    return cost([*PYTEST, "suites", *PHASES, "--store", str(store)], fleet, times=1, well=ENDED).cpu_s


def _count_judged(file: Path) -> int:
    """Return the number of judged outcomes. Errors are declared checks of suites that this fleet lacks."""
    counts = counts_of(file)
    return counts.total() - counts["error"]


def _make_fleet(folder: Path, nodes: int) -> Path:
    fleet = small_fleet(folder, nodes)
    evidence(fleet / ".assay" / "evidence" / "latest", nodes, ill=True)
    return fleet


def judge(root: Path) -> None:
    """Judge the whole fleet at `root` by its last evidence."""
    fleet = load_fleet(root)
    latest, nodes = root / ".assay" / "evidence" / "latest", list(fleet.nodes)
    reports, clock = root / "reports", SystemClock()
    run_validation(fleet, latest, nodes=nodes, phases=JUDGED, jobs=JOBS, reports=reports, ledger=None, clock=clock)


if __name__ == "__main__":
    judge(Path(sys.argv[1]).resolve())
