"""What the overview draws, as plain data: the cells of the map by pool and rack, and the lines of the trend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.harness.allure import result_uuid
from assay.harness.overview.look import STALE_S, Overview, PoolTrend, Stood
from assay.harness.overview.words import age, many, percent

WIDTH, HEIGHT = 220, 36


@dataclass(frozen=True, slots=True)
class Cell:
    """One node of the map: how many checks are amiss, how it stands (a class of the style), and where its result is."""

    name: str
    ill: int
    look: str
    says: str
    link: str


@dataclass(frozen=True, slots=True)
class Rack:
    """The nodes of a rack."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PoolMap:
    """A pool as the map shows it: how many of its nodes (of fabrics: of these) do not stand well, and its racks."""

    name: str
    nodes: int
    ill: int
    racks: tuple[Rack, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """The trend of a pool: points of a polyline, the share now, and the range that the line is drawn in."""

    pool: str
    points: str
    now: str
    low: str
    says: str
    falling: bool


def cells(one: Overview, by_pool: Mapping[str, Mapping[str, Sequence[Stood]]]) -> list[PoolMap]:
    """Return the map, pool by pool."""
    made = []
    for pool, racks in by_pool.items():
        drawn = tuple(Rack(name, tuple(_cell(one, stood) for stood in held)) for name, held in racks.items())
        every = [stood for held in racks.values() for stood in held]
        counted = [stood for stood in every if stood.node] or every
        ill = sum(stood.failing + stood.unknown > 0 for stood in counted)
        made.append(PoolMap(pool, len(counted), ill, drawn))
    return made


def link(holder: str, run: str) -> str:
    """Return where a holder's result is in the Allure report of a run."""
    return f"allure/index.html#{hashlib.md5(result_uuid(holder, run).encode(), usedforsecurity=False).hexdigest()}"


def lines(trends: Iterable[PoolTrend]) -> list[Line]:
    """Return the trend of each pool as a line from left to right: at the top all pass, at the bottom the fewest did."""
    return [_line(trend) for trend in trends]


def _cell(one: Overview, stood: Stood) -> Cell:
    if stood.measured is None:
        return Cell(stood.label, 0, "never", f"{stood.name}: never judged", "allure/index.html")
    told = [many(stood.failing, "failure")] if stood.failing else []
    told += [f"{stood.unknown} cannot be judged"] if stood.unknown else []
    told += [f"{stood.newly} of them new"] if stood.newly and not one.first else []
    told += [f"{stood.excused} excused"] if stood.excused else []
    more = [f"and {stood.left_out} more"] if stood.left_out else []
    late = one.newest.at - stood.measured
    told += [f"judged {age(late)} before the newest run"] if late > STALE_S else []
    head = f"{stood.name}: {', '.join(told) or many(stood.judged, 'check') + ' well'}"
    says, ill = "\n".join([head, *stood.says, *more]), stood.failing + stood.unknown
    return Cell(stood.label, ill, _look(stood, late), says, link(stood.name, one.newest.run))


def _look(stood: Stood, late: float) -> str:
    if stood.failing:
        return "new" if stood.newly else "old"
    if stood.unknown:
        return "lost" if stood.newly else "unknown"
    if late > STALE_S:
        return "stale"
    return "excused" if stood.excused else "well"


def _line(trend: PoolTrend) -> Line:
    known = [share for _, share in trend.shares if share is not None]
    low = min(known, default=0.0)
    span = max(1 - low, 1e-4)
    step = WIDTH / max(1, len(trend.shares) - 1)
    points = [
        f"{at * step:.1f},{(1 - share) / span * HEIGHT:.1f}"
        for at, (_, share) in enumerate(trend.shares)
        if share is not None
    ]
    falling = len(known) > 1 and known[-1] < known[-2]
    says = f"{many(trend.ill, 'place')} of {trend.holders:,} not well"
    return Line(trend.pool, " ".join(points), percent(known[-1] if known else None), percent(low), says, falling)
