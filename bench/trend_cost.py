"""What it costs to find what gets worse in a large fleet, in a night.

`python -m bench.trend_cost HOME DAYS` answers once, as of a day of the history. The full size:
`ASSAY_BENCH_TREND_NODES=10000 python -m bench trend-cost`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from assay.decide.trends.fleet_tables import open_fleet_tables
from assay.decide.trends.trend_answer import find_trends
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.store import Ledger
from bench.cost import cost
from bench.measurement import Measurement
from bench.trend_history import FIRST_AT, write_history, write_ledger

FULL_NODES, DAYS = 10_000, 90
NODES = int(os.environ.get("ASSAY_BENCH_TREND_NODES", "1000"))
"""A tenth in `make bench`. Bounds of CPU time are for the share of the full size."""
NIGHT_S, PEAK_MB = 90.0, 1500.0
"""The goals for the full size."""
FIXED_S = 11.0
"""What does not grow with the fleet: past weeks of 500 to 1,000 nodes, and the start of the program."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Make the history of a fleet, and answer once, in a process of its own."""
    home = folder / "trend-cost"
    write_ledger(home, NODES)
    write_history(history_folder(home / "reports"), NODES, DAYS)
    share = NODES / FULL_NODES
    what = f"assay trends, {NODES:,} nodes x 300 x {DAYS} days"
    spent = cost([sys.executable, "-m", "bench.trend_cost", str(home), str(DAYS)], Path.cwd(), times=1)
    yield Measurement(what, spent.cpu_s, "CPU s", "at most", NIGHT_S * share + FIXED_S * (1 - share))
    yield Measurement(f"{what}: memory", spent.peak_mb, "MB", "at most", PEAK_MB)


def answer(home: Path, days: int) -> int:
    """Return how many series were compared at the end of so many days of the history."""
    as_of, ledger = FIRST_AT + timedelta(days=days - 1, hours=10), Ledger.open(home / ".assay" / "ledger.sqlite")
    with open_fleet_tables(history_folder(home / "reports"), ledger, as_of) as database:
        return find_trends(database, as_of).series.judged


if __name__ == "__main__":
    print(answer(Path(sys.argv[1]), int(sys.argv[2])))  # noqa: T201 — the answer
