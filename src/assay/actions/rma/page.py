"""The page in front of a dossier: one file that needs nothing beside it but the photos. Every text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined

from assay.actions.rma.photos import Photos


def as_page(
    told: Mapping[str, Any], documents: Mapping[str, str], photos: Photos, pictures: Sequence[Mapping[str, Any]]
) -> str:
    """Return the HTML; `documents` are the digests of the evidence, each with "" or why it is missing.

    `pictures` are the photos as `listed`.
    """
    by_file = {each["file"]: each for each in pictures}
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((resources.files(__package__) / "page.html.j2").read_text())
    return template.render(one=told, documents=documents, photos=photos, pictures=by_file, when=_when)


def _when(at: str) -> str:
    return f"{at[:10]} {at[11:16]} UTC" if at else ""
