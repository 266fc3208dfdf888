"""The weekly evaluation as one page that needs nothing beside it: style and pictures are inside."""

from __future__ import annotations

from importlib import resources

from jinja2 import Environment, StrictUndefined

from assay.fabric.weekly import pictures
from assay.fabric.weekly.evaluation import Evaluation
from assay.fabric.weekly.words import look, span


def as_page(one: Evaluation) -> str:
    """Return the HTML. Every text in it is escaped: names of modules and devices come from outside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((resources.files(__package__) / "page.html.j2").read_text())
    return template.render(
        one=one, span=span(one), look=look(one), errors=pictures.errors_map(one),
        histograms=pictures.histograms(one), line=pictures.line,
    )  # fmt: skip
