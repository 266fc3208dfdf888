"""The newest figure of each measurement, in a file of the repository: what became slower is a line of `git diff`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.measurement import Measurement

KEPT = Path(__file__).with_name("figures.tsv")
COLUMNS = ("what", "figure", "unit", "spread", "load", "bound")


def read_kept(file: Path | None = None) -> dict[str, dict[str, str]]:
    """Return the kept rows by what was measured; none where there is no such file."""
    file = file or KEPT
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as text:
        return {row["what"]: row for row in csv.DictReader(text, delimiter="\t")}


def compare(taken: Sequence[Measurement], kept: dict[str, dict[str, str]]) -> list[Measurement]:
    """Return the measurements, each with the figure that was kept of it."""
    return [replace(one, former=float(kept[one.what]["figure"]) if one.what in kept else None) for one in taken]


def keep(taken: Sequence[Measurement], file: Path | None = None) -> None:
    """Write these figures over the kept ones. What was not measured stays."""
    file = file or KEPT
    rows = read_kept(file)
    for one in taken:
        bound = f"{one.side} {one.bound:g}"
        values = (one.what, f"{one.judged:.3g}", one.unit, f"{one.spread:.0%}", f"{one.load:.1f}", bound)
        rows[one.what] = dict(zip(COLUMNS, values, strict=True))
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for _, row in sorted(rows.items()))
