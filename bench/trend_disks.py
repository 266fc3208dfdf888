"""How good `assay trends` is on public data: Backblaze's disks, beside rules of one line, at as many false warnings.

`ASSAY_BENCH_DISKS=FILE python -m bench trend-disks`. FILE is the table `hds` of the R package dynamichazard, which is
made from https://www.backblaze.com/b2/hard-drive-test-data.html: its `hds.rda` (`pip install rdata` reads it), or the
same as Parquet. Nobody commits it. Its rows say what four counters of a disk were from one hour of its life to another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import duckdb
import numpy as np

from bench.measurement import Measurement
from bench.trend_judge import Judgement, judge_warnings
from bench.trend_methods import Scores, fill_days, name_above
from bench.trend_worlds import Drift, World
from bench.trends import LEAST_LEAD, ask_world

FILE = "ASSAY_BENCH_DISKS"
COUNTERS = ("smart_5", "smart_187", "smart_197", "smart_198")
MODELS = (
    ("ST3000DM001", 16024, 350, 1),
    ("ST4000DM000", 16600, 350, 6),
    ("HDS722020ALA330", 16300, 600, 2),
    ("ST31500541AS", 15830, 600, 1),
    ("ST31500341AS", 15830, 600, 1),
    ("WD30EFRX", 16180, 800, 1),
)
"""The model, the first day (since 1970) and how many, and which share of the disks: each, every sixth, every second."""
FIRST_DAY, EVERY, HORIZON = 110, 14, 30
_ROWS = """
SELECT serial_number, floor(min_date + (tstart - min_hours) / 24)::INT - $first AS since,
  least(floor(min_date + (tstop - min_hours) / 24), max_date)::INT - $first AS until, fails,
  smart_5::DOUBLE, smart_187::DOUBLE, smart_197::DOUBLE, smart_198::DOUBLE
FROM disks WHERE model LIKE '%' || $model AND hash(serial_number) % $share = 0
"""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Judge assay's warnings of each model; print the table of the rules on stderr."""
    if not (path := os.environ.get(FILE)):
        print(f"trend-disks is left out: name the file of disks in {FILE}", file=sys.stderr)  # noqa: T201
        return
    table = ["| model | method | found | of | false | per 1,000 disk-days | precision |"]
    for model, first, days, share in MODELS:
        world = read_disks(Path(path), model, first, days, share)
        asked = list(range(FIRST_DAY, days - HORIZON, EVERY))
        ours = ask_world(world, folder / model, asked).judgement
        others = {name: match_false(world, scores, asked, ours.false) for name, scores in score_by_rules(world).items()}
        for name, judged in {"**assay trends**": ours, **others}.items():
            shown = f"{judged.false} | {judged.false_rate:.3f} | {judged.precision:.2f}"
            table.append(f"| {model} | {name} | {len(judged.leads)} | {judged.foreseeable} | {shown} |")
        yield from _measure(model, ours, others)
    print("\n".join(table), file=sys.stderr)  # noqa: T201 — for people


def _measure(model: str, ours: Judgement, others: Mapping[str, Judgement]) -> Iterator[Measurement]:
    best, title = max(len(judged.leads) for judged in others.values()), f"assay trends, Backblaze's {model}"
    told = {"failures": ours.foreseeable, "false_rate": ours.false_rate, "precision": ours.precision}
    yield Measurement(f"{title}: found", len(ours.leads), "failures, as by any rule", "at least", best, told)
    yield Measurement(f"{title}: lead", ours.lead[0], "days", "at least", LEAST_LEAD, {"nine_in_ten": ours.lead[1]})


def read_disks(path: Path, model: str, first: int, days: int, share: int = 1) -> World:
    """Return the disks of a model as a world of counters; a disk may be foreseen in the 30 days before it fails."""
    with duckdb.connect() as database:
        if path.suffix == ".rda":
            frame = import_module("rdata").read_rda(path)["hds"]
            database.register("disks", frame.astype({"serial_number": str, "model": str, "manufacturer": str}))
        else:
            database.read_parquet(str(path)).create_view("disks")
        asked = {"first": first, "model": model, "share": share}
        rows = database.execute(f"{_ROWS} ORDER BY ALL", asked).fetchall()
    numbers = {serial: number for number, serial in enumerate(dict.fromkeys(row[0] for row in rows))}
    values, fails = np.full((len(numbers), len(COUNTERS), days), np.nan), dict[int, int]()
    for serial, since, until, failed, *counts in rows:
        values[numbers[serial], :, max(0, since) : max(0, until + 1)] = np.array(counts, dtype=float)[:, None]
        if failed and 0 <= until < days:
            fails[numbers[serial]] = until
    is_known = np.isfinite(values).any(axis=(0, 2))
    names = [name for name, known in zip(COUNTERS, is_known, strict=True) if known]
    world = World(model, first, values[:, is_known], names=tuple(names), counters=tuple(range(len(names))))
    world.updated = np.zeros(len(numbers), dtype=np.int64)
    world.drifts = [Drift(disk, 0, "", day - HORIZON, day) for disk, day in sorted(fails.items())]
    return world


def score_by_rules(world: World) -> dict[str, Scores]:
    """Return the scores of rules of one line, NaN for a disk that is silent."""
    filled = np.stack([fill_days(world.values[:, number]) for number in world.counters], axis=1)
    grown = np.zeros_like(filled)
    grown[:, :, 14:] = np.maximum(filled[:, :, 14:] - filled[:, :, :-14], 0)
    rules = {
        "sum of logarithms of growth in 14 days": np.nansum(np.log1p(grown), axis=1),
        "sum of logarithms of levels": np.nansum(np.log1p(filled), axis=1),
    }
    rules |= {f"growth of {name} in 14 days": np.nan_to_num(grown[:, at]) for at, name in enumerate(world.names)}
    is_read = np.isfinite(world.values).any(axis=1)
    return {name: np.where(is_read, scores, np.nan)[:, None] for name, scores in rules.items()}


def match_false(world: World, scores: Scores, days: Sequence[int], false: int) -> Judgement:
    """Return the judgement at the lowest threshold with at most so many false warnings."""
    known = scores[:, :, list(days)]
    ladder = np.append(np.unique(known[np.isfinite(known) & (known > 0)]), np.inf)
    low, high = 0, len(ladder) - 1
    while low < high:
        middle = (low + high) // 2
        judged = judge_warnings(world, days, name_above(scores, days, ladder[middle]))
        low, high = (low, middle) if judged.false <= false else (middle + 1, high)
    return judge_warnings(world, days, name_above(scores, days, ladder[low]))
