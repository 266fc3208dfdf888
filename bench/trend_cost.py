"""What it costs to find what gets worse in a large fleet: the first night, again on the same day, and the next day.

`python -m bench.trend_cost HOME DAYS` answers once, as of a day of the history. The full size:
`ASSAY_BENCH_TREND_NODES=10000 python -m bench trend-cost`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from assay.decide.trends.day_cache import KEPT_FILE
from assay.decide.trends.fleet_tables import HOLDERS_FILE, open_fleet_tables
from assay.decide.trends.trend_answer import find_trends
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.store import Ledger
from bench.cost import cost
from bench.measurement import Measurement
from bench.trend_history import FIRST_AT, write_history, write_ledger

FULL_NODES, DAYS = 10_000, 90
NODES = int(os.environ.get("ASSAY_BENCH_TREND_NODES", "1000"))
"""A tenth in `make bench`. Bounds of CPU time are for the share of the full size."""
FIRST_S, NEXT_S, PEAK_MB = 90.0, 10.0, 1500.0
"""The goals for the full size. Measured, at pace 1: about 77 and 8 CPU seconds, 1,146 MB."""
FIXED_FIRST_S, FIXED_NEXT_S = 11.0, 1.0
"""What does not grow with the fleet: past weeks of 500 to 1,000 nodes, and the start of the program. It is where the
line through what 1,000 nodes cost at pace 1 (17.4 and 1.65) and what 10,000 cost (77 and 8) meets a fleet of none."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Make the history of a fleet with one day more, and answer three times, each time in a process of its own."""
    home = folder / "trend-cost"
    write_ledger(home, NODES)
    write_history(history_folder(home / "reports"), NODES, DAYS + 1)
    share = NODES / FULL_NODES
    what = f"assay trends, {NODES:,} nodes x 300 x {DAYS} days"
    asked = {"the first night": DAYS, "again the same day": DAYS, "the next day": DAYS + 1}
    for when, days in asked.items():
        is_first = when == "the first night"
        spent = cost([sys.executable, "-m", "bench.trend_cost", str(home), str(days)], Path.cwd(), times=1)
        most, fixed = (FIRST_S, FIXED_FIRST_S) if is_first else (NEXT_S, FIXED_NEXT_S)
        kept = {"kept_mb": (home / "reports" / KEPT_FILE).stat().st_size / 1e6}
        yield Measurement(f"{what}: {when}", spent.cpu_s, "CPU s", "at most", most * share + fixed * (1 - share), kept)
        yield Measurement(f"{what}: {when}, memory", spent.peak_mb, "MB", "at most", PEAK_MB)


def answer(home: Path, days: int) -> int:
    """Return how many series were compared at the end of so many days of the history."""
    as_of, ledger = FIRST_AT + timedelta(days=days - 1, hours=10), Ledger.open(home / ".assay" / "ledger.sqlite")
    reports = home / "reports"
    with open_fleet_tables(history_folder(reports), ledger, as_of, kept=reports / HOLDERS_FILE) as database:
        return find_trends(database, as_of, kept=reports / KEPT_FILE).findings.series.judged


if __name__ == "__main__":
    print(answer(Path(sys.argv[1]), int(sys.argv[2])))  # noqa: T201 — the answer
