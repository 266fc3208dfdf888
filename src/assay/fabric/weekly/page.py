"""Renders the weekly evaluation as a page: heat map of errors, histograms by vendor, lines of drifts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.evaluation import WeeklyEvaluation
from assay.fabric.weekly.findings import PortFinding
from assay.fabric.weekly.text_report import describe_ports_to_check, format_week_span
from assay.fabric.weekly.week import PortWeek
from assay.pages.drawing import draw_polyline
from assay.pages.rendering import render_page

MAX_SWITCHES_BY_PORT = 4
"""With up to this many switches a rail, a row is a switch and a cell a port. With more, a row is a rail."""
SHADES = 5
HISTOGRAM_BARS = 14
TREND_SIZE = (160, 28)
READING_KEYS = {reading.name: reading.key for reading in READINGS}


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One cell of a heat map: its column (from 1), its shade (0 none, 5 darkest) and its tooltip."""

    column: int
    shade: int
    description: str


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One row of a heat map with its cells, or one histogram with its bars (height from 0 to 1, tooltip)."""

    name: str
    cells: tuple[HeatMapCell, ...] = ()
    bars: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows of cells under numbered columns. `shades` gives the meaning of each shade, the lightest first."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ChartRow, ...]
    shades: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VendorHistogram:
    """One distribution per vendor, all over the same axis from `low` to `high`."""

    title: str
    low: str
    high: str
    rows: tuple[ChartRow, ...]


def render_weekly_page(evaluation: WeeklyEvaluation) -> str:
    """Return the HTML, in one file without links. All text is escaped, also what modules and devices announce."""
    return render_page(
        __package__,
        "weekly.html.j2",
        evaluation=evaluation,
        span=format_week_span(evaluation),
        verdict=describe_ports_to_check(evaluation),
        errors=draw_error_heat_map(evaluation),
        histograms=draw_vendor_histograms(evaluation),
        trend=draw_trend_line,
        trend_size=TREND_SIZE,
    )


def draw_error_heat_map(evaluation: WeeklyEvaluation) -> HeatMap:
    """Return the errors by switch and port in a small fabric, by rail and leaf switch in a large one."""
    leaf_names = {port.end.device for port in evaluation.ports if port.far.node and not port.end.node}
    leaf_ports = [port for port in evaluation.ports if port.end.device in leaf_names and port.rail is not None]
    leaves_of_rail: dict[int | None, set[str]] = defaultdict(set)
    for port in leaf_ports:
        leaves_of_rail[port.rail].add(port.end.device)
    if max(map(len, leaves_of_rail.values()), default=0) <= MAX_SWITCHES_BY_PORT:
        return _draw_errors_by_port([port for port in evaluation.ports if not port.end.node])
    return _draw_errors_by_rail(leaf_ports)


def _draw_errors_by_port(ports: Sequence[PortWeek]) -> HeatMap:
    most = max((port.summary.errors for port in ports), default=0)
    rows: dict[str, dict[int, HeatMapCell]] = defaultdict(dict)
    for port in ports:
        errors = port.summary.errors
        description = f"{port.end} to {port.far}: {errors} errors"
        rows[port.end.device][port.end.port] = HeatMapCell(port.end.port, _find_shade(errors, most), description)
    last = max((column for cells in rows.values() for column in cells), default=0)
    drawn = tuple(ChartRow(name, tuple(cells.values())) for name, cells in sorted(rows.items()))
    return HeatMap("Errors by switch and port", tuple(map(str, range(1, last + 1))), drawn, _describe_shades(most))


def _draw_errors_by_rail(ports: Sequence[PortWeek]) -> HeatMap:
    errors: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for port in ports:
        errors[port.rail or 0][port.end.device] += port.summary.errors
    most = max((count for leaves in errors.values() for count in leaves.values()), default=0)
    rows = []
    for rail, leaves in sorted(errors.items()):
        cells = (
            HeatMapCell(column, _find_shade(leaves[name], most), f"{name}: {leaves[name]} errors")
            for column, name in enumerate(sorted(leaves), 1)
        )
        rows.append(ChartRow(f"rail {rail}", tuple(cells)))
    columns = tuple(map(str, range(1, max(map(len, errors.values()), default=0) + 1)))
    return HeatMap("Errors by rail and leaf", columns, tuple(rows), _describe_shades(most))


def _find_shade(count: int, most: int) -> int:
    """Return 0 for none, else 1 to `SHADES` by the logarithm: one bad link must not make all others look clean."""
    return max(1, ceil(SHADES * log10(count + 1) / log10(most + 1))) if count else 0


def _describe_shades(most: int) -> tuple[str, ...]:
    edges = [round((most + 1) ** (shade / SHADES)) for shade in range(1, SHADES + 1)]
    return ("none", *(f"to {edge:,}" for edge in edges)) if most else ("none",)


def draw_vendor_histograms(evaluation: WeeklyEvaluation) -> list[VendorHistogram]:
    """Return the module temperatures and bit error ratios by vendor. A reading that no port has is left out."""
    drawn = [
        _draw_histogram("Module temperature", evaluation.ports, "temperature", "{:.0f} °C"),
        _draw_histogram("Bit error ratio", evaluation.ports, "ber_power", "1e{:.0f}"),
    ]
    return [histogram for histogram in drawn if histogram.rows]


def _draw_histogram(title: str, ports: Iterable[PortWeek], key: str, axis: str) -> VendorHistogram:
    values: dict[str, list[float]] = defaultdict(list)
    for port in ports:
        if (value := port.summary.median(key)) is not None:
            values[port.summary.vendor or "not known"].append(value)
    every = [value for of_vendor in values.values() for value in of_vendor]
    low, high = (floor(min(every)), ceil(max(every)) + 1) if every else (0, 1)
    rows = tuple(
        ChartRow(f"{vendor} ({len(own)})", bars=_draw_bars(own, low, high, axis))
        for vendor, own in sorted(values.items())
    )
    return VendorHistogram(title, axis.format(low), axis.format(high), rows)


def _draw_bars(values: Sequence[float], low: int, high: int, axis: str) -> tuple[tuple[float, str], ...]:
    width = (high - low) / HISTOGRAM_BARS
    counts = [0] * HISTOGRAM_BARS
    for value in values:
        counts[min(int((value - low) / width), HISTOGRAM_BARS - 1)] += 1
    edges = [axis.format(low + number * width) for number in range(HISTOGRAM_BARS + 1)]
    return tuple(
        (count / max(counts), f"{count} modules from {edges[number]} to {edges[number + 1]}")
        for number, count in enumerate(counts)
    )


def draw_trend_line(finding: PortFinding) -> str:
    """Return the points of a drift as a SVG polyline takes them, "" where no points are stored."""
    trend = finding.port.summary.trends.get(READING_KEYS.get(finding.what, ""))
    points = trend.points if trend else ()
    if len(points) < 2:
        return ""
    values = [value for _, value in points]
    return draw_polyline(points, TREND_SIZE, (points[0][0], points[-1][0]), (min(values), max(values)))
