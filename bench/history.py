"""The cost to append a run to the history, and to query a hundred runs about one node.

One run of a million outcomes is real. The other ninety-nine are copies of its files under other names and days, so
only times and bytes are meaningful. `python -m bench.history RUN HOME` appends one run.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from assay.ledger.history.append import append_run
from assay.ledger.history.parquet_files import HISTORY_TABLES, history_folder
from assay.ledger.history.queries import OutcomeHistory, OutcomeQuery, query_flaky_checks, query_turns
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.clock import SystemClock
from assay.model.outcome import Measurement, Outcome, SuiteRun
from bench.cost import cost
from bench.measurement import Measurement as Figure
from bench.programs import BIN

NODES, CHECKS, RUNS, DAYS = 10_000, 100, 100, 90
NOW = SystemClock().now()
NODE = f"n{NODES // 2:05}"
ASK_S, COMMAND_S, BYTES, PEAK_MB = 0.2, 1.5, 10.0, 300.0
TIMES = 5
Query = Callable[[OutcomeHistory], object]


def measurements(folder: Path) -> Iterator[Figure]:
    """Append a run, then query a hundred, all below `folder`."""
    reports = folder / "fleet" / "reports"
    run = store_run(reports)
    spent = cost([sys.executable, "-m", "bench.history", str(run), str(history_folder(reports))], Path.cwd(), times=1)
    what = f"{NODES * CHECKS:,} outcomes"
    size = sum(file.stat().st_size for file in history_folder(reports).rglob("*.parquet"))
    parts = {"cpu_s": spent.cpu_s, "run_bytes": run.stat().st_size / NODES / CHECKS}
    yield Figure(f"history of {what}: on disk", size / NODES / CHECKS, "B an outcome", "at most", BYTES, parts)
    yield Figure(f"history of {what}: peak memory while appended", spent.peak_mb, "MB", "at most", PEAK_MB)
    copy_run(reports)
    yield _measure_queries(reports)
    command = [str(BIN / "assay"), "history", NODE, "--outcomes", "--fleet", str(reports.parent)]
    spent = cost(command, Path.cwd())
    yield Figure(f"assay history {NODE} --outcomes, {RUNS} runs", spent.cpu_s, "CPU s", "at most", COMMAND_S)


def store_run(reports: Path) -> Path:
    """Store a run of 10,000 nodes × 100 checks; every fiftieth outcome fails, every third has a measurement."""
    chance = random.Random(1)  # noqa: S311 — outcomes need not be secret
    names = tuple(f"n{number:05}" for number in range(NODES))
    run = SuiteRun(f"{NOW:%Y%m%dT%H%M%S}.000-abcdef", NOW.isoformat(), ("production",), names, "c0ffee")
    file = reports / "runs" / run.id / "run.sqlite"
    file.parent.mkdir(parents=True)
    writer = OutcomeWriter(file, run, {"ended": "whole"})
    for number, node in enumerate(names):
        for check in range(CHECKS):
            writer(_outcome(chance, node, f"pool-{number // 2500 + 1:02}", number, check))
    writer.close()
    return file


def copy_run(reports: Path) -> None:
    """Copy the run's files to earlier days, as if there had been a run on each."""
    for table in HISTORY_TABLES:
        (one,) = history_folder(reports).glob(f"{table}/*/*.parquet")
        for number in range(1, RUNS):
            at = NOW - timedelta(days=number * DAYS / RUNS)
            file = history_folder(reports) / table / f"day={at.date()}" / f"{at:%Y%m%dT%H%M%S}.000-abcdef.parquet"
            file.parent.mkdir(exist_ok=True)
            shutil.copyfile(one, file)


def _outcome(chance: random.Random, node: str, pool: str, number: int, check: int) -> Outcome:
    value = 70 + chance.randrange(2000) / 100
    failed = chance.random() < 0.02
    limit = f"specs/nodes/hgx-h100.yaml:{check}"
    return Outcome(
        check=f"suites/production/test_area{check // 10}.py::test_number_{check}",
        subject=f"{pool}/{node}/gpu{check % 8}" if check < 60 else f"{pool}/{node}",
        node=node,
        verdict="fail" if failed else "pass",
        reason=f"gauge_{check} is {value} °C, at most 85 ({limit})" if failed else "",
        fault=f"gpu.fault{check % 40}",
        phases=("production", "test"),
        evidence=sha256(node.encode()).hexdigest(),
        evidence_at=f"2026-11-21T19:{number % 60:02}:11.123456+00:00",
        duration_s=chance.randrange(900) / 1e6,
        measurements=(Measurement(f"gauge_{check}", value, "°C", None, 85, limit),) if check % 3 == 0 else (),
    )


def _measure_queries(reports: Path) -> Figure:
    """Measure the CPU seconds of each query, each time on a newly opened history."""
    node = OutcomeQuery(nodes=[NODE])
    queries: dict[str, Query] = {
        "figure": lambda history: query_turns(history, node, days=DAYS),
        "flapping_s": lambda history: query_flaky_checks(history, node, days=DAYS),
        "all_nodes_30_days_s": lambda history: query_flaky_checks(history, days=30),
    }
    taken = {name: min(_seconds(reports, query) for _ in range(TIMES)) for name, query in queries.items()}
    what = f"history of one node: {DAYS} days, {RUNS} runs of {NODES * CHECKS:,} outcomes"
    return Figure(what, taken.pop("figure"), "CPU s", "at most", ASK_S, taken)


def _seconds(reports: Path, query: Query) -> float:
    with OutcomeHistory(history_folder(reports), NOW) as history:
        start = time.process_time()
        query(history)
        return time.process_time() - start


if __name__ == "__main__":
    append_run(Path(sys.argv[1]), Path(sys.argv[2]))
