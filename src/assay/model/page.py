"""Renders a page: the template of one package inside the base template that all pages share.

Pages write numbers and times by its filters, and draw with its SVG geometry.
"""

from __future__ import annotations

from collections.abc import Iterable
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


SHARED_TEMPLATES = frozenset({"base.html.j2", "macros.html.j2", "style.css"})
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
