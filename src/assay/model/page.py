"""Renders a page: the template of one package inside the base template that all pages share.

Pages write numbers and times by its filters, and draw with its SVG geometry: also the picture of something that gets
worse, with its days, the band of its peers, its limit, and where it goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from assay.model.text.safe_text import escape_controls
from assay.model.timestamps import parse_time


def format_number(count: int) -> str:
    """Return a number with separators between thousands: `16,384`."""
    return f"{count:,}"


def format_quantity(count: int, noun: str) -> str:
    """Return a number with its noun: `1 node`, `16,384 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_utc(at: datetime | float | str | None, missing: str = "") -> str:
    """Return a time to the minute: `2026-10-01 14:02 UTC`. A number is seconds since 1970, a text ISO 8601.

    Returns `missing` for None and for an empty text.
    """
    if at is None or at == "":
        return missing
    moment = datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else at
    return f"{parse_time(moment) if isinstance(moment, str) else moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


SHARED_TEMPLATES = frozenset({"base.html.j2", "macros.html.j2", "style.css", "worsening.html.j2"})
"""The templates of this package. Every other template belongs to the package that renders it."""


def render_page(package: str, template: str, *, in_lab: bool = False, **values: Any) -> str:
    """Return the HTML of a page, or of a part of one. `template` is a file of `package`; pages extend `base.html.j2`.

    Every value is escaped, also its control characters, because names and reasons come from outside. A value that the
    template names and `values` lacks raises jinja2.UndefinedError. Filters: `number`,
    `quantity` and `utc`, from `assay.model.page`. A page `in_lab` says in its head that its machines are virtual.
    """
    return _environment(package).get_template(template).render(values, in_lab=in_lab)


@cache
def _environment(package: str) -> Environment:
    def read(name: str) -> str:
        folder = resources.files(__package__ if name in SHARED_TEMPLATES else package)
        return (folder / name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda shown: escape_controls(shown) if type(shown) is str else shown,
    )
    environment.filters |= {"number": format_number, "quantity": format_quantity, "utc": format_utc}
    return environment


def draw_polyline(
    points: Iterable[tuple[float, float]], size: tuple[float, float], x: tuple[float, float], y: tuple[float, float]
) -> str:
    """Return the `points` attribute of a SVG polyline in a field of `size` (width, height).

    `x` and `y` are the ranges of the axes, first and last value. The last value of `y` is at the top. An axis whose
    two values are equal draws everything at its first value.
    """
    across, up = size[0] / ((x[1] - x[0]) or 1), size[1] / ((y[1] - y[0]) or 1)
    return " ".join(f"{(at - x[0]) * across:.1f},{size[1] - (value - y[0]) * up:.1f}" for at, value in points)


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
    levels = [*_drop_wild(course["values"]), *_drop_wild(course["low"]), *_drop_wild(course["high"])]
    levels += [*course["values"][-1:], *([limit] if limit is not None and rate_days else [])]
    spare = (max(levels) - min(levels)) * 0.06 or 1.0
    up = min(levels) - spare, max(levels) + spare

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


def _list_ahead(warning: Mapping[str, Any], today: float) -> list[tuple[float, float]]:
    """Return where the limit is reached: at the first and the last day of the range, or at this rate."""
    if warning["limit"] is None or not warning.get("rate_days"):
        return []
    days = warning["days"] or [warning["rate_days"]]
    reached = [(min(day, AHEAD_DAYS), day) for day in (days[0], days[-1])]
    change = warning["limit"] - warning["to"]
    return [(today + shown, warning["to"] + change * shown / day) for shown, day in reached if day > 0]


Answer = Mapping[str, Any]
"""The stored answer of `assay trends`, as JSON has it, with `at`."""
Rows = list[tuple[str, list[tuple[Answer, DrawnCourse | None]]]]


def render_worsening(answer: Answer, *, in_lab: bool = False) -> str:
    """Return the HTML of a page that needs no server."""
    groups = group_rows(answer)
    return render_page(
        __package__,
        "worsening_page.html.j2",
        in_lab=in_lab,
        answer=answer,
        groups=groups,
        size=SIZE,
        node_link=lambda _: "",
    )


def group_rows(answer: Answer) -> Rows:
    """Return the warnings with their pictures, by the group that explains them; those of no group stand last."""
    groups: dict[str, list[tuple[Answer, DrawnCourse | None]]] = defaultdict(list)
    for warning in answer["warnings"]:
        groups[warning["group"]].append((warning, draw_course(warning)))
    return sorted(groups.items(), key=lambda item: (not item[0], item[0]))
