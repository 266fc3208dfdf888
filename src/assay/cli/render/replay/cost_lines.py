"""The costs of a policy in words: titles, numbers, what they assume, and the weighted sum with its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

COST_TITLES = {
    "out_node_hours": "node-hours out of service",
    "cordoned_idle_node_hours": "node-hours cordoned while idle",
    "catastrophic_node_hours": "node-hours served with an open catastrophic fault",
    "degraded_node_hours": "node-hours served with an open degraded fault",
    "catastrophic_jobs": "jobs that met a catastrophic fault",
    "degraded_jobs": "jobs that met a degraded fault",
    "catastrophic_job_nodes": "nodes of the jobs that met a catastrophic fault",
    "jobs_ended": "other jobs that automation ended",
    "tickets": "tickets",
    "person_hours": "hours of people",
}
WEIGHTED_TITLE = "weighted sum, in node-hours"


def format_number(value: float | None) -> str:
    """Return a cost for people: whole from 100 on, else with one decimal."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"


def format_cost_table(names: Sequence[str], documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line per cost, with one column per document; for two, also whose cost is lower."""
    rows = [(title, [one["costs"][name] for one in documents]) for name, title in COST_TITLES.items()]
    weighted = [one["weighted_node_hours"] for one in documents]
    if None not in weighted:
        rows.append((WEIGHTED_TITLE, weighted))
    widths = [max(10, len(name)) for name in names]
    left = max(len(title) for title, _ in rows)
    if len(names) > 1:
        yield f"  {'':{left}}  {'  '.join(f'{name:>{width}}' for name, width in zip(names, widths, strict=True))}"
    for title, values in rows:
        numbers = "  ".join(f"{format_number(value):>{width}}" for value, width in zip(values, widths, strict=True))
        yield f"  {title:{left}}  {numbers}{_name_lower(names, values)}".rstrip()


def _name_lower(names: Sequence[str], values: Sequence[float]) -> str:
    if len(values) != 2 or values[0] == values[1]:
        return ""
    return f"  lower: {names[0] if values[0] < values[1] else names[1]}"


def format_cost_assumptions(assumed: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the costs assume: jobs, people's hours, and the weights with their owner."""
    jobs, people, weights = assumed["jobs"], assumed["people"], assumed["weights"]
    yield f"jobs: {jobs['note']}" + (f" ({jobs['source']})" if "source" in jobs else "")
    yield "people: " + ", ".join(f"{one['hours']:g} h per {name}" for name, one in people.items())
    if weights:
        said = ", ".join(f"{COST_TITLES[name]} × {one['node_hours']:g}" for name, one in weights.items())
        yield f"weights: {said}"
        yield "  the weighted sum only ranks; look at the costs first"
    yield f"assumed by {assumed['owner']}: cost assumptions {assumed['name']} ({assumed['where']})"
