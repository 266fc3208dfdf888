"""What the overview draws, as plain data: the cells of the map by pool and rack, and the lines of the trend.

The overview as one page that needs nothing beside it: style and pictures are inside, there is no script.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources

from jinja2 import Environment, StrictUndefined

from assay.results.report import overview_phrases
from assay.results.report.allure_results import result_uuid
from assay.results.report.overview_model import (
    STALE_AFTER_S,
    FleetOverview,
    HolderSummary,
    PoolTrend,
    group_by_pool_and_rack,
)
from assay.results.report.overview_phrases import age, many, percent

TREND_WIDTH, TREND_HEIGHT = 220, 36


@dataclass(frozen=True, slots=True)
class NodeCell:
    """One node of the map: how many checks are amiss, how it stands (a class of the style), and where its result is."""

    name: str
    ill: int
    look: str
    says: str
    link: str


@dataclass(frozen=True, slots=True)
class RackCells:
    """The nodes of a rack."""

    name: str
    cells: tuple[NodeCell, ...]


@dataclass(frozen=True, slots=True)
class PoolMap:
    """A pool as the map shows it: how many of its nodes (of fabrics: of these) do not stand well, and its racks."""

    name: str
    nodes: int
    ill: int
    racks: tuple[RackCells, ...]


@dataclass(frozen=True, slots=True)
class TrendLine:
    """The trend of a pool: points of a polyline, the share now, and the range that the line is drawn in."""

    pool: str
    points: str
    now: str
    low: str
    says: str
    falling: bool


def draw_pool_maps(one: FleetOverview, by_pool: Mapping[str, Mapping[str, Sequence[HolderSummary]]]) -> list[PoolMap]:
    """Return the map, pool by pool."""
    made = []
    for pool, racks in by_pool.items():
        drawn = tuple(RackCells(name, tuple(_cell(one, stood) for stood in held)) for name, held in racks.items())
        every = [stood for held in racks.values() for stood in held]
        counted = [stood for stood in every if stood.node] or every
        ill = sum(stood.failing + stood.unknown > 0 for stood in counted)
        made.append(PoolMap(pool, len(counted), ill, drawn))
    return made


def allure_link(holder: str, run: str) -> str:
    """Return where a holder's result is in the Allure report of a run."""
    return f"allure/index.html#{hashlib.md5(result_uuid(holder, run).encode(), usedforsecurity=False).hexdigest()}"


def draw_trends(trends: Iterable[PoolTrend]) -> list[TrendLine]:
    """Return the trend of each pool as a line from left to right: at the top all pass, at the bottom the fewest did."""
    return [_line(trend) for trend in trends]


def _cell(one: FleetOverview, stood: HolderSummary) -> NodeCell:
    if stood.measured is None:
        return NodeCell(stood.label, 0, "never", f"{stood.name}: never judged", "allure/index.html")
    told = [many(stood.failing, "failure")] if stood.failing else []
    told += [f"{stood.unknown} cannot be judged"] if stood.unknown else []
    told += [f"{stood.newly} of them new"] if stood.newly and not one.first else []
    told += [f"{stood.excused} excused"] if stood.excused else []
    more = [f"and {stood.left_out} more"] if stood.left_out else []
    late = one.newest.at - stood.measured
    told += [f"judged {age(late)} before the newest run"] if late > STALE_AFTER_S else []
    head = f"{stood.name}: {', '.join(told) or many(stood.judged, 'check') + ' well'}"
    says, ill = "\n".join([head, *stood.says, *more]), stood.failing + stood.unknown
    return NodeCell(stood.label, ill, _cell_style(stood, late), says, allure_link(stood.name, one.newest.run))


def _cell_style(stood: HolderSummary, late: float) -> str:
    if stood.failing:
        return "new" if stood.newly else "old"
    if stood.unknown:
        return "lost" if stood.newly else "unknown"
    if late > STALE_AFTER_S:
        return "stale"
    return "excused" if stood.excused else "well"


def _line(trend: PoolTrend) -> TrendLine:
    known = [share for _, share in trend.shares if share is not None]
    low = min(known, default=0.0)
    span = max(1 - low, 1e-4)
    step = TREND_WIDTH / max(1, len(trend.shares) - 1)
    points = [
        f"{at * step:.1f},{(1 - share) / span * TREND_HEIGHT:.1f}"
        for at, (_, share) in enumerate(trend.shares)
        if share is not None
    ]
    falling = len(known) > 1 and known[-1] < known[-2]
    says = f"{many(trend.ill, 'place')} of {trend.holders:,} not well"
    return TrendLine(trend.pool, " ".join(points), percent(known[-1] if known else None), percent(low), says, falling)


MAX_ROOMY_NODES, MIN_DENSE_NODES = 120, 2500
"""Up to so many nodes, each cell of the map has the node's name in it; from so many on, cells are small."""


def render_overview(one: FleetOverview) -> str:
    """Return the HTML. Every text in it is escaped: names and reasons come from outside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((resources.files(__package__) / "page.html.j2").read_text())
    newly, lost = (0, 0) if one.first else (len(one.broke), len(one.lost))
    nodes = [stood for stood in one.stood if stood.node]
    return template.render(
        one=one,
        words=overview_phrases,
        link=partial(allure_link, run=one.newest.run),
        map=draw_pool_maps(one, group_by_pool_and_rack(one.stood)),
        room="roomy" if len(one.stood) <= MAX_ROOMY_NODES else "dense" if len(one.stood) >= MIN_DENSE_NODES else "",
        lines=draw_trends(one.trends),
        mended=_by_holder(one),
        nodes=len(nodes),
        lost_on=len({change.holder for change in one.lost}),
        ill=sum(stood.failing + stood.unknown > 0 for stood in nodes),
        still=sum(stood.failing for stood in one.stood) - newly,
        still_unknown=sum(stood.unknown for stood in one.stood) - lost,
    )


def _by_holder(one: FleetOverview) -> list[tuple[str, list[str]]]:
    """Return what was fixed, by node, the node with most first."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for change in one.mended:
        found[change.holder][change.check] = None
    return sorted(((holder, list(checks)) for holder, checks in found.items()), key=lambda each: -len(each[1]))
