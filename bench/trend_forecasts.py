"""Whether eight in ten failures come within their range of days, on fleets whose own past weeks teach the range.

The fleets have many drifts, so that well over 30 warnings have come true. Judged are warnings of today whose failure is
still to come, which nothing was learnt from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal

from assay.trends.peers.measurement_tables import TrendFiles
from assay.trends.peers.trend_answer import answer_trends
from bench.measurement import Measurement
from bench.trend_worlds import KINDS, NAMES, START, make_world, write_world

NODES, DAYS, DRIFTS_PER_1000 = 1000, 250, 500
SEEDS, ASKED = range(300, 302), range(152, 200, 12)
COVERED: tuple[tuple[Literal["at least", "at most"], float], ...] = (("at least", 0.75), ("at most", 0.85))
"""A range of 80 % holds so many of the failures."""


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure the share of failures within their range, over all worlds; beside it that of each kind of world."""
    placed = {kind: [place for seed in SEEDS for place in place_failures(kind, seed, folder / f"{kind}{seed}")]
              for kind in KINDS}  # fmt: skip
    every = [place for kind in KINDS for place in placed[kind]]
    figures: dict[str, float] = {
        "warnings": len(every),
        **{one: every.count(one) for one in ("before", "within", "after")},
    }
    figures |= {kind: _find_share(placed[kind]) for kind in KINDS}
    what = "assay trends, failures within their range of days"
    for side, bound in COVERED:
        yield Measurement(what, _find_share(every), "of warnings", side, bound, figures)


def place_failures(kind: str, seed: int, folder: Path) -> Iterator[str]:
    """Yield for each warning with a range, whose drift goes on, where its failure is: before, within or after it."""
    world = make_world(kind, seed, NODES, DAYS, DRIFTS_PER_1000)
    files = TrendFiles(*write_world(world, folder))
    fails = {(one.node, one.measurement): (one.onset, one.fails) for one in world.drifts if one.fails is not None}
    for day in ASKED:
        for warning in answer_trends(files, START + timedelta(days=day, hours=1)).warnings:
            series = int(warning.score.node[1:]), NAMES.index(warning.score.name)
            onset, failed = fails.get(series, (0, 0))
            days = warning.forecast and warning.forecast.days
            if days and onset <= day < failed:
                low, _, high = days
                yield "before" if failed - day < low else "after" if failed - day > high else "within"


def _find_share(placed: Sequence[str]) -> float:
    return placed.count("within") / max(1, len(placed))
