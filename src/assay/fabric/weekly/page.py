"""Renders the weekly evaluation as a page: heat maps of errors, lines of drifts.

In the heat maps, every port of the fabric is in one cell, and the worst port is darkest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log10

from markupsafe import Markup

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.evaluation import WeekChanges, WeeklyEvaluation
from assay.fabric.weekly.findings import PortFinding, describe_stuck_port, list_stuck_ports
from assay.fabric.weekly.text_report import SHOWN_CHANGES, describe_ports_to_check, format_week_span
from assay.fabric.weekly.week import PortWeek
from assay.model.page import draw_polyline, render_page
from assay.model.text.lists import sort_naturally

MAX_SWITCHES_BY_PORT = 4
"""With up to this many switches a rail, a row is a switch or node and a cell a port. With more, a row is a rail."""
SHADES = 5
NODES_A_BLOCK = 32
PortsOfCell = Mapping[tuple[str, str], Sequence[PortWeek]]
"""The ports of each cell, by the names of its row and its column."""
TREND_SIZE = (160, 28)
READING_KEYS = {reading.name: reading.key for reading in READINGS}


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One cell of a heat map: its column (from 0), its shade (0 none, 5 darkest) and its tooltip."""

    column: int
    shade: int
    description: str


@dataclass(frozen=True, slots=True)
class HeatMapRow:
    """One row of a heat map: its name and its cells."""

    name: str
    cells: tuple[HeatMapCell, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows of cells under named columns; every `label_every`th column shows its name.

    Blocks of `rows_a_block` rows stand beside each other.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[HeatMapRow, ...]
    rows_a_block: int
    label_every: int = 8


@dataclass(frozen=True, slots=True)
class ErrorHeatMaps:
    """The heat maps of a fabric, all with the same shades. `shades`: the meaning of each shade, the lightest first."""

    maps: tuple[HeatMap, ...]
    shades: tuple[str, ...]


def render_weekly_page(
    evaluation: WeeklyEvaluation, changes: WeekChanges | None = None, *, in_lab: bool = False
) -> str:
    """Return the HTML, in one file without links. All text is escaped, also what modules and devices announce."""
    return render_page(
        __package__,
        "weekly.html.j2",
        in_lab=in_lab,
        evaluation=evaluation,
        changes=changes or WeekChanges(),
        shown_changes=SHOWN_CHANGES,
        readings=[reading for reading in READINGS if any(reading.key in group.medians for group in evaluation.groups)],
        drawn=Markup,
        span=format_week_span(evaluation),
        stuck=[describe_stuck_port(port, evaluation.week) for port in list_stuck_ports(evaluation.ports)],
        verdict=describe_ports_to_check(evaluation),
        errors=draw_error_heat_maps(evaluation.ports),
        trend=draw_trend_line,
        trend_size=TREND_SIZE,
    )


def draw_error_heat_maps(ports: Sequence[PortWeek]) -> ErrorHeatMaps:
    """Return the errors by port in a small fabric, by rail and leaf switch in a large one."""
    leaf_of = {port.end.guid: port.far.device for port in ports if port.end.node and not port.far.node}
    rails_of: dict[int | None, set[str]] = defaultdict(set)
    for port in ports:
        if port.end.guid in leaf_of:
            rails_of[port.rail].add(leaf_of[port.end.guid])
    small = max(map(len, rails_of.values()), default=0) <= MAX_SWITCHES_BY_PORT
    most = max((port.summary.errors for port in ports), default=0)
    maps = _draw_by_port(ports, most) if small else _draw_by_rail(ports, leaf_of, most)
    edges = [round((most + 1) ** (shade / SHADES)) for shade in range(1, SHADES)]
    shades = ("none", *(f"to {edge:,}" for edge in edges), f"to {most:,}") if most else ("none",)
    return ErrorHeatMaps(tuple(maps), shades)


def _draw_by_port(ports: Iterable[PortWeek], most: int) -> Iterator[HeatMap]:
    """Yield a map of the switches, a column for each port, and one of the nodes, a column for each adapter."""
    switches: dict[tuple[str, str], list[PortWeek]] = defaultdict(list)
    nodes: dict[tuple[str, str], list[PortWeek]] = defaultdict(list)
    for port in ports:
        if port.end.node:
            adapter = port.end.device.removeprefix(f"{port.end.node} ")
            nodes[port.end.node, port.end.label or adapter].append(port)
        else:
            switches[port.end.device, port.end.label or str(port.end.port)].append(port)
    if switches:
        rows = len({row for row, _ in switches})
        yield _draw_map("Errors by switch and port", switches, most, rows)
    if nodes:
        wide = any(len(column) > 2 for _, column in nodes)
        label_every = 8 if wide else 2
        yield _draw_map("Errors by node and adapter", nodes, most, NODES_A_BLOCK, label_every)


def _draw_by_rail(ports: Iterable[PortWeek], leaf_of: Mapping[str, str], most: int) -> Iterator[HeatMap]:
    """Yield a map by rail and leaf, with the adapters that hang on the leaf, and one of the other switches."""
    leaves, others = defaultdict[str, list[PortWeek]](list), defaultdict[str, list[PortWeek]](list)
    of_leaf, rail_of = set(leaf_of.values()), dict[str, int | None]()
    for port in ports:
        leaf = leaf_of.get(port.end.guid) or port.end.device
        (leaves if leaf in of_leaf else others)[leaf].append(port)
        if leaf in of_leaf and (port.rail is not None or leaf not in rail_of):
            rail_of[leaf] = port.rail
    by_rail: dict[str, list[str]] = defaultdict(list)
    for leaf in sorted(leaves, key=sort_naturally):
        by_rail["other leaves" if rail_of[leaf] is None else f"rail {rail_of[leaf]}"].append(leaf)
    cells = {
        (rail, str(number)): leaves[leaf] for rail, names in by_rail.items() for number, leaf in enumerate(names, 1)
    }
    yield _draw_map("Errors by rail and leaf, with its adapters", cells, most, len(by_rail))
    if others:
        names = enumerate(sorted(others, key=sort_naturally), 1)
        yield _draw_map("Errors of other switches", {("switch", str(n)): others[name] for n, name in names}, most, 1)


def _draw_map(title: str, ports_of: PortsOfCell, most: int, rows_a_block: int, label_every: int = 8) -> HeatMap:
    columns = sorted({column for _, column in ports_of}, key=sort_naturally)
    place = {column: number for number, column in enumerate(columns)}
    rows: dict[str, list[HeatMapCell]] = defaultdict(list)
    for (row, column), ports in ports_of.items():
        rows[row].append(_draw_cell(place[column], ports, most))
    drawn = [HeatMapRow(name, tuple(rows[name])) for name in sorted(rows, key=sort_naturally)]
    return HeatMap(title, tuple(columns), tuple(drawn), rows_a_block, label_every)


def _draw_cell(column: int, ports: Sequence[PortWeek], most: int) -> HeatMapCell:
    """Return a cell with the shade of its worst port: a sum would hide one bad port among many clean ones."""
    worst = max(ports, key=lambda port: port.summary.errors)
    errors = worst.summary.errors
    text = f"{worst.end} to {worst.far}: {errors:,} errors"
    if len(ports) > 1:
        total = sum(port.summary.errors for port in ports)
        text = f"{worst.end.device}: {total:,} errors on {len(ports)} ports; the worst: {text}"
    # By the logarithm: one bad link must not make all others look clean.
    shade = max(1, ceil(SHADES * log10(errors + 1) / log10(most + 1) - 1e-9)) if errors else 0
    return HeatMapCell(column, shade, text)


def draw_trend_line(finding: PortFinding) -> str:
    """Return the points of a drift as a SVG polyline takes them, "" where no points are stored."""
    trend = finding.port.summary.trends.get(READING_KEYS.get(finding.what, ""))
    points = trend.points if trend else ()
    if len(points) < 2:
        return ""
    values = [value for _, value in points]
    return draw_polyline(points, TREND_SIZE, (points[0][0], points[-1][0]), (min(values), max(values)))
