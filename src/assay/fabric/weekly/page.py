"""What the page draws, as numbers: cells of heat maps, bars of histograms, points of lines.

The weekly evaluation as one page that needs nothing beside it: style and pictures are inside.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from math import ceil, floor, log10

from jinja2 import Environment, StrictUndefined

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.evaluation import WeeklyEvaluation
from assay.fabric.weekly.findings import PortFinding
from assay.fabric.weekly.text_report import describe_ports_to_check, format_week_span
from assay.fabric.weekly.week import PortWeek

FEW_UNITS = 4
"""Up to so many switches a rail, a row is a switch and a cell a port; beyond, a row is a rail and a cell a switch."""
STEPS = 5
BARS = 14
KEYS = {one.name: one.key for one in READINGS}


@dataclass(frozen=True, slots=True)
class HeatMapCell:
    """One field of a heat map: its column, how dark it is (0 none, 5 most), and what to say of it."""

    column: int
    shade: int
    says: str


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One row of a heat map or one histogram: a name, and its cells or the heights (0 to 1) of its bars."""

    name: str
    cells: tuple[HeatMapCell, ...] = ()
    bars: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Rows of cells under numbered columns. `shades` says what each shade means."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ChartRow, ...]
    shades: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VendorHistogram:
    """One distribution a vendor, over the same axis from `low` to `high`."""

    title: str
    low: str
    high: str
    rows: tuple[ChartRow, ...]


def draw_error_heat_map(one: WeeklyEvaluation) -> HeatMap:
    """Draw where errors are: by switch and port in a small fabric, by rail and switch in a large one."""
    names = {port.end.device for port in one.ports if port.far.node and not port.end.node}
    leaves = [port for port in one.ports if port.end.device in names and port.rail is not None]
    per_rail: dict[int | None, set[str]] = defaultdict(set)
    for port in leaves:
        per_rail[port.rail].add(port.end.device)
    if max(map(len, per_rail.values()), default=0) <= FEW_UNITS:
        return _by_port([port for port in one.ports if not port.end.node])
    return _by_rail(leaves)


def _by_port(ports: Sequence[PortWeek]) -> HeatMap:
    most = max((port.summary.errors for port in ports), default=0)
    rows: dict[str, dict[int, HeatMapCell]] = defaultdict(dict)
    for port in ports:
        said = f"{port.end} to {port.far}: {port.summary.errors} errors"
        rows[port.end.device][port.end.port] = HeatMapCell(port.end.port, _shade(port.summary.errors, most), said)
    last = max((column for cells in rows.values() for column in cells), default=0)
    drawn = tuple(ChartRow(name, tuple(cells.values())) for name, cells in sorted(rows.items()))
    return HeatMap("Errors by switch and port", tuple(map(str, range(1, last + 1))), drawn, _shades(most))


def _by_rail(ports: Sequence[PortWeek]) -> HeatMap:
    total: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for port in ports:
        total[port.rail or 0][port.end.device] += port.summary.errors
    most = max((count for leaves in total.values() for count in leaves.values()), default=0)
    rows = [
        ChartRow(
            f"rail {rail}",
            tuple(_leaf(number, name, leaves[name], most) for number, name in enumerate(sorted(leaves), 1)),
        )
        for rail, leaves in sorted(total.items())
    ]
    columns = tuple(str(number) for number in range(1, max(map(len, total.values()), default=0) + 1))
    return HeatMap("Errors by rail and leaf", columns, tuple(rows), _shades(most))


def _leaf(number: int, name: str, count: int, most: int) -> HeatMapCell:
    return HeatMapCell(number, _shade(count, most), f"{name}: {count} errors")


def _shade(count: int, most: int) -> int:
    """Return 0 for none, else 1 to `STEPS` by the logarithm: one bad link must not make all others look clean."""
    return max(1, ceil(STEPS * log10(count + 1) / log10(most + 1))) if count else 0


def _shades(most: int) -> tuple[str, ...]:
    edges = [round((most + 1) ** (step / STEPS)) for step in range(1, STEPS + 1)]
    return ("none", *(f"to {edge:,}" for edge in edges)) if most else ("none",)


def draw_vendor_histograms(one: WeeklyEvaluation) -> list[VendorHistogram]:
    """Draw how temperatures and bit error ratios are spread, vendor by vendor; none where nothing was read."""
    drawn = [
        _histogram("Module temperature", one.ports, "temperature", "{:.0f} °C"),
        _histogram("Bit error ratio", one.ports, "ber_power", "1e{:.0f}"),
    ]
    return [histogram for histogram in drawn if histogram.rows]


def _histogram(title: str, ports: Iterable[PortWeek], key: str, axis: str) -> VendorHistogram:
    values: dict[str, list[float]] = defaultdict(list)
    for port in ports:
        if (value := port.summary.usual(key)) is not None:
            values[port.summary.vendor or "not known"].append(value)
    every = [value for of_vendor in values.values() for value in of_vendor]
    low, high = (floor(min(every)), ceil(max(every)) + 1) if every else (0, 1)
    rows = tuple(
        ChartRow(f"{name} ({len(ones)})", bars=_bars(ones, low, high, axis)) for name, ones in sorted(values.items())
    )
    return VendorHistogram(title, axis.format(low), axis.format(high), rows)


def _bars(values: Sequence[float], low: int, high: int, axis: str) -> tuple[tuple[float, str], ...]:
    width = (high - low) / BARS
    counts = [0] * BARS
    for value in values:
        counts[min(int((value - low) / width), BARS - 1)] += 1
    most = max(counts)
    return tuple(
        (
            count / most,
            f"{count} modules from {axis.format(low + number * width)} to {axis.format(low + (number + 1) * width)}",
        )
        for number, count in enumerate(counts)
    )


def draw_trend_line(found: PortFinding, width: float = 160, height: float = 28) -> str:
    """Return the points of a drift's line, as SVG's polyline takes them; "" where there is nothing to draw."""
    trend = found.port.summary.trends.get(KEYS.get(found.what, ""))
    points = trend.points if trend else ()
    if len(points) < 2:
        return ""
    (first, _), (last, _) = points[0], points[-1]
    low, high = min(value for _, value in points), max(value for _, value in points)
    across, up = width / ((last - first) or 1), height / ((high - low) or 1)
    return " ".join(f"{(at - first) * across:.1f},{height - (value - low) * up:.1f}" for at, value in points)


def render_weekly_page(one: WeeklyEvaluation) -> str:
    """Return the HTML. Every text in it is escaped: names of modules and devices come from outside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((resources.files(__package__) / "page.html.j2").read_text())
    return template.render(
        one=one, span=format_week_span(one), look=describe_ports_to_check(one), errors=draw_error_heat_map(one),
        histograms=draw_vendor_histograms(one), line=draw_trend_line,
    )  # fmt: skip
