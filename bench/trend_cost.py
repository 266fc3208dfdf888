"""What `assay trends` costs on the history of a large fleet: nightly, and asked again later on the same day.

`python -m bench.trend_cost HOME DAYS` answers once, as the nightly evaluation does. The full size:
`ASSAY_BENCH_TREND_NODES=10000 python -m bench trend-cost`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from assay.ledger.store import Ledger
from assay.results.history.parquet_files import history_folder
from assay.trends.peers.fleet_tables import open_fleet_tables
from assay.trends.peers.trend_answer import find_trends
from assay.trends.peers.trend_cache import KEPT_FILE
from bench.cost import cost
from bench.measurement import Measurement
from bench.trend_history import FIRST_AT, write_history, write_ledger

FULL_NODES, DAYS = 10_000, 90
NODES = int(os.environ.get("ASSAY_BENCH_TREND_NODES", "1000"))
"""A tenth in `make bench`. Bounds of CPU time and the kept file are for the share of the full size."""
NIGHTLY_S, LATER_S, PEAK_MB = 90.0, 10.0, 1500.0
FIXED_S = 9.0
"""What does not grow with the fleet: the past weeks of 1,000 nodes, and the start of the program."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Make the history of a fleet, then answer twice, each time in a process of its own."""
    home = folder / "trend-cost"
    write_ledger(home, NODES)
    write_history(history_folder(home / "reports"), NODES, DAYS)
    share = NODES / FULL_NODES
    what = f"assay trends, {NODES:,} nodes x 300 x {DAYS} days"
    command = [sys.executable, "-m", "bench.trend_cost", str(home), str(DAYS)]
    nightly = cost(command, Path.cwd(), times=1)
    kept_mb = (home / "reports" / KEPT_FILE).stat().st_size / 1e6
    later = cost(command, Path.cwd(), times=1)
    fixed = FIXED_S * (1 - share)
    yield Measurement(f"{what}: nightly", nightly.cpu_s, "CPU s", "at most", NIGHTLY_S * share + fixed)
    yield Measurement(f"{what}: peak memory", nightly.peak_mb, "MB", "at most", PEAK_MB, {"later_mb": later.peak_mb})
    yield Measurement(f"{what}: later the same day", later.cpu_s, "CPU s", "at most", LATER_S, {"kept_mb": kept_mb})


def answer(home: Path, days: int) -> int:
    """Return how many series were compared at the end of the history."""
    as_of, ledger = FIRST_AT + timedelta(days=days - 1, hours=10), Ledger.open(home / ".assay" / "ledger.sqlite")
    with open_fleet_tables(history_folder(home / "reports"), ledger, as_of) as database:
        return find_trends(database, as_of, kept=home / "reports" / KEPT_FILE).findings.series.judged


if __name__ == "__main__":
    print(answer(Path(sys.argv[1]), int(sys.argv[2])))  # noqa: T201 — the answer
