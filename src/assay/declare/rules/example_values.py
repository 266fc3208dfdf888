"""Examples that stand in for a site's own documents and values."""

from __future__ import annotations

from collections.abc import Iterator

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import STAND_IN_CODE, RuleFinding, rule
from assay.declare.stand_ins import find_placeholders, find_spec_stand_ins


@rule(
    STAND_IN_CODE,
    "an example that stands in for your own",
    why="The lab works with it. What would use it on a real machine refuses.",
    severity="notice",
)
def stand_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find documents with the mark `stands_in`, and placeholders in specs and in the inventory."""
    seen = set[tuple[str, int, int]]()
    for key, file in draft.spec_files.items():
        for one in find_spec_stand_ins(file.spec):
            place = draft.find_position(key, *one.path)
            if place not in seen:  # what extends a document has its values, too
                seen.add(place)
                yield RuleFinding(place, one.what, one.fix)
    for host in draft.hosts:  # a pool may list all its nodes in a variable: lists of names are not looked through
        texts = {key: text for key, text in host.variables.items() if isinstance(text, str) or key == "node_network"}
        for one in find_placeholders(texts):
            place = host.find_position(*one.path)
            if place not in seen:
                seen.add(place)
                yield RuleFinding(place, f"{host.name}: {one.what}", one.fix)
