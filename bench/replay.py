"""What it costs to replay a year, and what becomes of each row of Llama 3's Table 5."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.cost import cost
from bench.injector import Row, as_it_was, at_that_rate, table
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

NODES, DAYS, BUSY = 400, 365, 5
REPLAY = [*ASSAY, "replay", "--policy", "specs/lifecycle/default.yaml", "--format", "json", "--events"]


def measurements(folder: Path) -> Iterator[Measurement]:
    """Replay a year of 400 nodes at the public rate and at five times that, then the table itself, row by row."""
    told = table()
    for times, bound in ((1, 20.0), (BUSY, 60.0)):
        file = _written(folder / f"year-{times}.jsonl", at_that_rate(told, NODES, DAYS, times))
        taken = cost([*REPLAY, str(file)], ROOT, times=1)
        what = f"assay replay, a year of {NODES} nodes" + (f", {times} times the public rate of faults" * (times > 1))
        yield Measurement(what, taken.cpu_s, "CPU s", "at most", bound, {"peak_mb": taken.peak_mb})
    answer = _replayed(_written(folder / "llama3.jsonl", as_it_was(told)))
    first = 0
    for row in told.rows:
        yield _row(row, _causes(answer, row, range(first, first + row.count)))
        first += row.count


def _row(row: Row, remedies: Counter[str]) -> Measurement:
    """Return how many of a row were seen, and what was done about them first."""
    what = f"Llama 3, {row.component}: seen of {row.count}" + ("" if row.shows else " (nothing on a node shows it)")
    made_of = {name: float(count) for name, count in sorted(remedies.items())}
    return Measurement(what, remedies.total(), "faults", "at least", row.count if row.shows else 0, made_of)


def _causes(answer: dict[str, Any], row: Row, numbers: Iterable[int]) -> Counter[str]:
    """Return the first answer to each interruption of a row: a state that the node went to, a ticket, or a note."""
    found: Counter[str] = Counter()
    for number in numbers:
        marked = f"{row.component} #{number}."
        about = [one for one in answer["decisions"] if marked in one["because"]]
        moved = [one for one in about if one["timing"] != "record"]
        if moved:
            found[f"to {moved[0]['to']}, {moved[0]['timing']}"] += 1
        elif about:
            found[{"none": "noted", "wait": "held back"}.get(about[-1]["remedy"], about[-1]["remedy"])] += 1
    return found


def _written(file: Path, events: Iterable[dict[str, Any]]) -> Path:
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return file


def _replayed(file: Path) -> dict[str, Any]:
    done = subprocess.run([*REPLAY, str(file)], cwd=ROOT, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
