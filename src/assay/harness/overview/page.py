"""The overview as one page that needs nothing beside it: style and pictures are inside, there is no script."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from importlib import resources

from jinja2 import Environment, StrictUndefined

from assay.harness.overview import words
from assay.harness.overview.look import Overview, pools
from assay.harness.overview.pictures import cells, lines, link

ROOMY, DENSE = 120, 2500
"""Up to so many nodes, each cell of the map has the node's name in it; from so many on, cells are small."""


def as_page(one: Overview) -> str:
    """Return the HTML. Every text in it is escaped: names and reasons come from outside."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((resources.files(__package__) / "page.html.j2").read_text())
    newly, lost = (0, 0) if one.first else (len(one.broke), len(one.lost))
    nodes = [stood for stood in one.stood if stood.node]
    return template.render(
        one=one,
        words=words,
        link=partial(link, run=one.newest.run),
        map=cells(one, pools(one.stood)),
        room="roomy" if len(one.stood) <= ROOMY else "dense" if len(one.stood) >= DENSE else "",
        lines=lines(one.trends),
        mended=_by_holder(one),
        nodes=len(nodes),
        lost_on=len({change.holder for change in one.lost}),
        ill=sum(stood.failing + stood.unknown > 0 for stood in nodes),
        still=sum(stood.failing for stood in one.stood) - newly,
        still_unknown=sum(stood.unknown for stood in one.stood) - lost,
    )


def _by_holder(one: Overview) -> list[tuple[str, list[str]]]:
    """Return what was fixed, by node, the node with most first."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for change in one.mended:
        found[change.holder][change.check] = None
    return sorted(((holder, list(checks)) for holder, checks in found.items()), key=lambda each: -len(each[1]))
