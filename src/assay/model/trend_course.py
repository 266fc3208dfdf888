"""The picture of something that gets worse: its days, the band of its peers, its limit, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.drawing import draw_polyline

SIZE = (260.0, 56.0)
AHEAD_DAYS = 45.0
"""How far ahead the picture reaches at most."""


@dataclass(frozen=True, slots=True)
class DrawnCourse:
    """SVG geometry: `line` and `band` as points, the height of the `limit`, and the `fan` ("" where nobody knows)."""

    line: str
    band: str
    limit: str
    fan: str
    label: str


def draw_course(warning: Mapping[str, Any]) -> DrawnCourse | None:
    """Return the picture of a warning of the stored answer, None where it has no course."""
    course = warning.get("course")
    if not course or not course["values"]:
        return None
    limit, rate_days = warning["limit"], warning.get("rate_days")
    ahead = _list_ahead(warning, course["days"][-1])
    across = (min([*course["days"], *course["peer_days"]]), max([course["days"][-1], *(day for day, _ in ahead)]))
    up = _find_range([*_drop_wild(course["values"]), *([limit] if limit is not None and rate_days else [])], course)

    def place(days: Sequence[float], values: Sequence[float]) -> str:
        inside = (min(max(value, up[0]), up[1]) for value in values)
        return draw_polyline(zip(days, inside, strict=True), SIZE, across, up)

    outline = [*course["peer_days"], *reversed(course["peer_days"])], [*course["low"], *reversed(course["high"])]
    is_shown = limit is not None and up[0] <= limit <= up[1]
    fan = [(course["days"][-1], warning["to"]), *ahead] if ahead else []
    return DrawnCourse(
        line=place(course["days"], course["values"]),
        band=place(*outline),
        limit=place([across[0]], [limit]).partition(",")[2] if is_shown else "",
        fan=place([day for day, _ in fan], [value for _, value in fan]),
        label=f"{len(course['values'])} days, from {course['values'][0]:.4g} to {course['values'][-1]:.4g}",
    )


def _drop_wild(values: Sequence[float]) -> Sequence[float]:
    """Return the values without the highest and the lowest twentieth: one wild reading would flatten the rest."""
    spare = len(values) // 20
    return sorted(values)[spare : len(values) - spare]


def _find_range(shown: Sequence[float], course: Mapping[str, Any]) -> tuple[float, float]:
    levels = [*shown, *_drop_wild(course["low"]), *_drop_wild(course["high"]), *course["values"][-1:]]
    spare = (max(levels) - min(levels)) * 0.06 or 1.0
    return min(levels) - spare, max(levels) + spare


def _list_ahead(warning: Mapping[str, Any], today: float) -> list[tuple[float, float]]:
    """Return where the limit is reached: at the first and the last day of the range, or at this rate."""
    if warning["limit"] is None or not warning.get("rate_days"):
        return []
    days = warning["days"] or [warning["rate_days"]]
    reached = [(min(day, AHEAD_DAYS), day) for day in (days[0], days[-1])]
    change = warning["limit"] - warning["to"]
    return [(today + shown, warning["to"] + change * shown / day) for shown, day in reached if day > 0]
