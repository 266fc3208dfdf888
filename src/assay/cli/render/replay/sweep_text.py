"""The answer of `assay replay --sweep` for people: one row per value of the setting, one column per cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from assay.cli.render.replay.cost_lines import format_cost_assumptions, format_number
from assay.trends.replay.history_lines import format_elapsed

COLUMNS = {
    "out_node_hours": ("out of", "service, h"),
    "cordoned_idle_node_hours": ("cordoned,", "idle, h"),
    "catastrophic_node_hours": ("served,", "catastr., h"),
    "degraded_node_hours": ("served,", "degraded, h"),
    "catastrophic_jobs": ("jobs met", "catastr."),
    "degraded_jobs": ("jobs met", "degraded"),
    "jobs_ended": ("jobs", "ended"),
    "tickets": ("", "tickets"),
    "person_hours": ("hours of", "people"),
}
WIDTH = 12


def format_sweep_text(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for a document of `format_sweep_result`. Neighbours with the same costs share a row."""
    sweep = document["sweep"]
    begin, end = (at if isinstance(at, str) else format_elapsed(at) for at in (document["from"], document["until"]))
    yield f"policy {document['policy']}, {document['events']:,} events, {begin} to {end}"
    yield f"{sweep['path']} is {sweep['current']:g} now; `h` are node-hours; served: with such an open fault"
    yield ""
    weighted = sweep["points"][0]["weighted_node_hours"] is not None
    titles = [*COLUMNS.values(), *([("weighted", "sum, h")] if weighted else [])]
    for line in (0, 1):
        yield f"{'' if line == 0 else 'value':>14}" + "".join(f"{title[line]:>{WIDTH}}" for title in titles)
    for _, group in groupby(sweep["points"], key=lambda point: point["costs"]):
        yield _format_row(list(group), sweep["current"], weighted)
    yield ""
    yield from format_cost_assumptions(document["cost_assumptions"])
    if document["unknown_faults"]:
        yield f"not in the fault catalogue: {', '.join(document['unknown_faults'])}"


def _format_row(points: list[Mapping[str, Any]], current: float, weighted: bool) -> str:
    first, last = points[0]["value"], points[-1]["value"]
    values = f"{first:g}" if first == last else f"{first:g} to {last:g}"
    mark = " ◂" if first <= current <= last else "  "
    numbers = [points[0]["costs"][name] for name in COLUMNS]
    numbers += [points[0]["weighted_node_hours"]] if weighted else []
    return f"{values:>12}{mark}" + "".join(f"{format_number(number):>{WIDTH}}" for number in numbers)
