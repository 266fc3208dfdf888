"""Renders the overview of the fleet as a page: the map by pool and rack, and the template's words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from assay.model.page import format_quantity, render_page
from assay.model.timestamps import format_duration
from assay.tell.report import overview_phrases
from assay.tell.report.allure import NO_ALLURE, AllureLinks
from assay.tell.report.failure_cards import shorten_check
from assay.tell.report.overview_model import FleetOverview, HolderSummary, group_by_pool_and_rack

MAX_ROOMY_NODES, MIN_DENSE_NODES = 120, 2500
"""Up to the first number, each cell of the map shows the node's name. From the second number on, cells are small."""


@dataclass(frozen=True, slots=True)
class NodeCell:
    """One cell of the map: how many checks are not well, its CSS class, its tooltip, the link to its result or ""."""

    name: str
    ill: int
    look: str
    description: str
    link: str


@dataclass(frozen=True, slots=True)
class RackCells:
    """The nodes of a rack."""

    name: str
    cells: tuple[NodeCell, ...]


@dataclass(frozen=True, slots=True)
class PoolMap:
    """A pool in the map: its racks, its number of nodes (of fabrics, for a pool of fabrics), how many are not well."""

    name: str
    nodes: int
    ill: int
    racks: tuple[RackCells, ...]


def render_overview(overview: FleetOverview, links: AllureLinks = NO_ALLURE, *, in_lab: bool = False) -> str:
    """Return the HTML, in one file. All text is escaped."""
    newly, lost = (0, 0) if overview.first else (len(overview.broke), len(overview.lost))
    nodes = [holder for holder in overview.holders if holder.node]
    size = len(overview.holders)
    return render_page(
        __package__,
        "overview.html.j2",
        in_lab=in_lab,
        overview=overview,
        words=overview_phrases,
        shorten=shorten_check,
        link=links,
        pools=draw_pool_maps(overview, group_by_pool_and_rack(overview.holders), links),
        density="roomy" if size <= MAX_ROOMY_NODES else "dense" if size >= MIN_DENSE_NODES else "",
        fixed=_group_fixed_by_holder(overview),
        nodes=len(nodes),
        lost_on=len({change.holder for change in overview.lost}),
        ill=sum(holder.failing + holder.unknown > 0 for holder in nodes),
        still=sum(holder.failing for holder in overview.holders) - newly,
        still_unknown=sum(holder.unknown for holder in overview.holders) - lost,
    )


def _group_fixed_by_holder(overview: FleetOverview) -> list[tuple[str, list[str]]]:
    """Return the fixed checks by holder, the holder with the most first."""
    by_holder: dict[str, dict[str, None]] = defaultdict(dict)
    for change in overview.fixed:
        by_holder[change.holder][change.check] = None
    return sorted(((holder, list(checks)) for holder, checks in by_holder.items()), key=lambda each: -len(each[1]))


def draw_pool_maps(
    overview: FleetOverview, by_pool: Mapping[str, Mapping[str, Sequence[HolderSummary]]], links: AllureLinks
) -> list[PoolMap]:
    """Return the map, pool by pool. `by_pool` has the holders by pool and rack."""
    maps = []
    for pool, by_rack in by_pool.items():
        racks = tuple(
            RackCells(rack, tuple(_draw_cell(overview, holder, links) for holder in holders))
            for rack, holders in by_rack.items()
        )
        all_holders = [holder for holders in by_rack.values() for holder in holders]
        counted = [holder for holder in all_holders if holder.node] or all_holders
        ill = sum(holder.failing + holder.unknown > 0 for holder in counted)
        maps.append(PoolMap(pool, len(counted), ill, racks))
    return maps


def _draw_cell(overview: FleetOverview, holder: HolderSummary, links: AllureLinks) -> NodeCell:
    if holder.measured is None:
        return NodeCell(holder.label, 0, "never", f"{holder.name}: never judged", "")
    facts = [format_quantity(holder.failing, "failure")] if holder.failing else []
    facts += [f"{holder.unknown} cannot be judged"] if holder.unknown else []
    facts += [f"{holder.newly} of them new"] if holder.newly and not overview.first else []
    facts += [f"{holder.waiting} wait for the rollout"] if holder.waiting else []
    facts += [f"{holder.excused} excused"] if holder.excused else []
    if holder.stale:
        age = format_duration(timedelta(seconds=overview.newest.at - holder.measured))
        facts.append(f"{format_quantity(holder.stale, 'check')} passed on evidence too old; the newest is {age} old")
    well = f"{format_quantity(holder.judged, 'check')} well" if holder.judged else "nothing judged, all was skipped"
    head = f"{holder.name}: {', '.join(facts) or well}"
    lines = [head, *holder.problems, *([f"and {holder.left_out} more"] if holder.left_out else [])]
    return NodeCell(
        holder.label,
        holder.failing + holder.unknown,
        _find_look(holder),
        "\n".join(lines),
        links.holder(holder.name),
    )


def _find_look(holder: HolderSummary) -> str:
    if holder.failing:
        return "new" if holder.newly else "old"
    if holder.unknown:
        return "lost" if holder.newly else "unknown"
    if holder.stale:
        return "stale"
    if not holder.judged:
        return "unknown"
    return "waiting" if holder.waiting else "excused" if holder.excused else "well"
