"""Renders a page: the template of one package inside the base template that all pages share."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from assay.model.formatting import format_number, format_quantity, format_utc
from assay.model.text.printable_text import escape_controls

SHARED_TEMPLATES = frozenset({"base.html.j2", "macros.html.j2", "style.css", "worsening.html.j2"})
"""The templates of this package. Every other template belongs to the package that renders it."""


def render_page(package: str, template: str, *, in_lab: bool = False, **values: Any) -> str:
    """Return the HTML of a page, or of a part of one. `template` is a file of `package`; pages extend `base.html.j2`.

    Every value is escaped, also its control characters, because names and reasons come from outside. A value that the
    template names and `values` lacks raises jinja2.UndefinedError. Filters: `number`,
    `quantity` and `utc`, from `assay.model.formatting`. A page `in_lab` says in its head that its machines are virtual.
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
        finalize=_escape_text,
    )
    environment.filters |= {"number": format_number, "quantity": format_quantity, "utc": format_utc}
    return environment


def _escape_text(value: object) -> object:
    return escape_controls(value) if type(value) is str else value
