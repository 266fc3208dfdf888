"""The cost to replay a year of faults, and the remedy for each row of the Llama 3 paper's Table 5.

One history has the size of the public InfiniteHBD trace: 584 faults on 400 nodes in 348 days.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.cost import cost
from bench.injector import Row, Table, load_table, make_original_history, make_scaled_history
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

NODES, DAYS, BUSY = 400, 365, 5
TRACE_FAULTS, TRACE_DAYS, TRACE_BOUND = 584, 348, 5.0
"""The size of the InfiniteHBD trace, and the CPU seconds within which a replay of it answers."""
REPLAY = [*ASSAY, "replay", "--policy", "specs/lifecycle/default.yaml", "--format", "json", "--events"]


def measurements(folder: Path) -> Iterator[Measurement]:
    """Replay a trace, a year at one and five times the rate of the table, then the table itself, row by row."""
    table = load_table()
    yield from _measure_trace(folder, table)
    for times, bound in ((1, 20.0), (BUSY, 60.0)):
        file = _write_events(folder / f"year-{times}.jsonl", make_scaled_history(table, NODES, DAYS, times))
        taken = cost([*REPLAY, str(file)], ROOT, times=1)
        what = f"assay replay, a year of {NODES} nodes" + (f", {times} times the public rate of faults" * (times > 1))
        yield Measurement(what, taken.cpu_s, "CPU s", "at most", bound, {"peak_mb": taken.peak_mb})
    answer = _replay(_write_events(folder / "llama3.jsonl", make_original_history(table)))
    first = 0
    for row in table.rows:
        yield _measure_row(row, _count_remedies(answer, row, range(first, first + row.count)))
        first += row.count


def _measure_trace(folder: Path, table: Table) -> Iterator[Measurement]:
    """Replay a history of the trace's size."""
    times = TRACE_FAULTS / (table.rate * NODES * TRACE_DAYS)
    trace = _write_events(folder / "trace.jsonl", make_scaled_history(table, NODES, TRACE_DAYS, times))
    what = f"assay replay, {TRACE_DAYS} days of {NODES} nodes"
    taken = cost([*REPLAY, str(trace)], ROOT)
    yield Measurement(what, taken.cpu_s, "CPU s", "at most", TRACE_BOUND, {"peak_mb": taken.peak_mb})


def _measure_row(row: Row, remedies: Counter[str]) -> Measurement:
    """Return how many interruptions of a row were detected, with the first remedies."""
    what = f"Llama 3, {row.component}: seen of {row.count}" + ("" if row.shows else " (nothing on a node shows it)")
    made_of = {name: float(count) for name, count in sorted(remedies.items())}
    return Measurement(what, remedies.total(), "faults", "at least", row.count if row.shows else 0, made_of)


def _count_remedies(answer: dict[str, Any], row: Row, numbers: Iterable[int]) -> Counter[str]:
    """Count the first remedies for the interruptions of a row: a transition, a ticket, or a record only."""
    remedies: Counter[str] = Counter()
    for number in numbers:
        mark = f"{row.component} #{number}."
        decisions = [decision for decision in answer["decisions"] if mark in decision["because"]]
        moves = [decision for decision in decisions if decision["timing"] != "record"]
        if moves:
            remedies[f"to {moves[0]['to']}, {moves[0]['timing']}"] += 1
        elif decisions:
            remedy = decisions[-1]["remedy"]
            remedies[{"none": "recorded", "wait": "held back"}.get(remedy, remedy)] += 1
    return remedies


def _write_events(file: Path, events: Iterable[dict[str, Any]]) -> Path:
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return file


def _replay(file: Path) -> dict[str, Any]:
    done = subprocess.run([*REPLAY, str(file)], cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
