"""Shows which loads the GPUs have seen, and what the visits to idle nodes cost customers, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from assay.decide.state.load_coverage import GpuCoverage, PartCoverage
from assay.decide.state.visit_costs import VisitCosts
from assay.model.text.text_lists import format_count
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from assay.cli.answers.operation_answers import CoverageAnswer, LoadPartCoverage

PERCENTILES = (50, 95, 99, 100)


def make_coverage_document(gpus: Sequence[GpuCoverage], costs: Sequence[VisitCosts], now: datetime) -> CoverageAnswer:
    """Return the coverage of each GPU and the costs as plain JSON data."""
    return {
        "gpus": [
            {"serial": gpu.serial, "node": gpu.node, "parts": _parts_as_json(gpu, now)}
            for gpu in sorted(gpus, key=lambda gpu: (gpu.node, gpu.serial))
        ],
        "visits": [
            {
                "schedule": cost.schedule,
                "pool": cost.pool,
                "visits": cost.visits,
                "made_room": cost.made_room,
                "gone_ms": {
                    "p50": cost.find_percentile(50),
                    "p95": cost.find_percentile(95),
                    "p99": cost.find_percentile(99),
                    "p100": cost.find_percentile(100),
                },
            }
            for cost in costs
        ],
    }


def _parts_as_json(gpu: GpuCoverage, now: datetime) -> dict[str, LoadPartCoverage]:
    return {name: _part_as_json(part, now) for name, part in sorted(gpu.parts.items())}


def _part_as_json(part: PartCoverage, now: datetime) -> LoadPartCoverage:
    answer: LoadPartCoverage = {
        "covered_at": part.covered_at or None,
        "hours_since": measure_hours_since(part, now),
        "visits": part.visits,
        "cut": part.cut,
        "lacking": part.lacking,
    }
    if part.units:
        tests = dict(sorted(part.tests.items()))
        return {**answer, "units": part.units, "tests": tests, "last_unit": part.last_unit}
    return answer


def measure_hours_since(part: PartCoverage, now: datetime) -> float | None:
    """Return the hours since a part covered a GPU, None for never."""
    return round((now - parse_time(part.covered_at)).total_seconds() / 3600, 1) if part.covered_at else None


def format_coverage(gpus: Sequence[GpuCoverage], costs: Sequence[VisitCosts], now: datetime) -> Iterator[str]:
    """Yield the lines for people: a line for each GPU, then one for each schedule and pool."""
    for gpu in sorted(gpus, key=lambda gpu: (gpu.node, gpu.serial)):
        parts = ", ".join(f"{name} {_format_part(part, now)}" for name, part in sorted(gpu.parts.items()))
        yield f"{gpu.node}  {gpu.serial}  {parts}"
    if not gpus:
        yield "no idle node was visited yet"
    for cost in costs:
        yield format_costs(cost)


def _format_part(part: PartCoverage, now: datetime) -> str:
    hours = measure_hours_since(part, now)
    if hours is None:
        return "never: the node lacks something for it" if part.lacking else "never to its end"
    done = format_count(part.units, "unit") if part.units else format_count(part.visits, "time")
    return f"{hours:g} h ago ({done})"


def format_costs(cost: VisitCosts) -> str:
    """Return one line about what the visits of a schedule cost the customers of a pool."""
    waits = [(percent, cost.find_percentile(percent)) for percent in PERCENTILES]
    known = ", ".join(f"p{percent} {wait / 1000:.1f} s" for percent, wait in waits if wait is not None)
    words = f"; customers waited at most: {known}" if known else ""
    visits = f"{format_count(cost.visits, 'visit')}, {cost.made_room} made room"
    return f"{cost.schedule} of {cost.pool or 'no pool'}: {visits}{words}"
