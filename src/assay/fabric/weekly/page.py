"""Renders the weekly evaluation as a page: heat maps of errors, histograms by vendor, lines of drifts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from markupsafe import Markup

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.error_heat_map import draw_error_heat_maps
from assay.fabric.weekly.evaluation import WeeklyEvaluation
from assay.fabric.weekly.findings import PortFinding
from assay.fabric.weekly.text_report import SHOWN_CHANGES, describe_ports_to_check, format_week_span
from assay.fabric.weekly.unjudged import describe_stuck_port, list_stuck_ports
from assay.fabric.weekly.week import PortWeek
from assay.fabric.weekly.week_changes import WeekChanges
from assay.model.drawing import draw_polyline
from assay.model.rendering import render_page

HISTOGRAM_BARS = 14
TREND_SIZE = (160, 28)
READING_KEYS = {reading.name: reading.key for reading in READINGS}


@dataclass(frozen=True, slots=True)
class VendorBars:
    """The histogram of one vendor: its bars (height from 0 to 1, tooltip)."""

    name: str
    bars: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class VendorHistogram:
    """One distribution per vendor, all over the same axis from `low` to `high`."""

    title: str
    low: str
    high: str
    rows: tuple[VendorBars, ...]


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
        readings=[reading for reading in READINGS if any(reading.key in one.medians for one in evaluation.groups)],
        drawn=Markup,
        span=format_week_span(evaluation),
        stuck=[describe_stuck_port(port, evaluation.week) for port in list_stuck_ports(evaluation.ports)],
        verdict=describe_ports_to_check(evaluation),
        errors=draw_error_heat_maps(evaluation.ports),
        histograms=draw_vendor_histograms(evaluation),
        trend=draw_trend_line,
        trend_size=TREND_SIZE,
    )


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
        VendorBars(f"{vendor} ({len(own)})", _draw_bars(own, low, high, axis)) for vendor, own in sorted(values.items())
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
