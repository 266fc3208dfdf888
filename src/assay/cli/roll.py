"""Who is on the roll: the stories of the enrolled nodes, and what to say about a name that is not among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches

from assay.cli.desk import Desk
from assay.ledger.where import told
from assay.lifecycle.fold import fold
from assay.lifecycle.returned import returned_in
from assay.lifecycle.returned import told as in_words
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment, spoken
from assay.lifecycle.whereabouts import KINDS
from assay.model.entry import Entry
from assay.model.errors import Trouble


def stories(desk: Desk) -> list[Story]:
    """Return the story of every enrolled node, by pool and name. Makes no ledger where there is none."""
    return _sorted(fold(told(desk.ledger_at)))


def stories_and_returned(desk: Desk) -> tuple[list[Story], dict[str, list[str]]]:
    """Return the stories, and by node what is to be said of parts in it that were sent back once."""
    entries = told(desk.ledger_at)
    return _sorted(fold(entries)), _returned(entries)


def returned_to(desk: Desk, node: str) -> list[str]:
    """Return what is to be said of parts in a node that were sent back once."""
    return _returned(desk.ledger.entries(node, KINDS)).get(node, [])


def _returned(entries: Iterable[Entry]) -> dict[str, list[str]]:
    ours = [entry for entry in entries if entry.kind in KINDS]
    nodes = {entry.node for entry in ours if entry.kind == "part.returned"}
    here = {name: returned_in(entry for entry in ours if entry.node == name) for name in nodes}
    return {name: [in_words(entry) for entry in back] for name, back in here.items() if back}


def _sorted(found: Mapping[str, Story]) -> list[Story]:
    return sorted(found.values(), key=lambda story: (story.pool, story.node))


def story_of(desk: Desk, name: str) -> Story:
    """Return the story of one node. Raises Trouble for an unknown one, with the names that are near."""
    known = {story.node: story for story in stories(desk)}
    if name in known:
        return known[name]
    declared = list(desk.fleet.nodes)
    if name in declared:
        raise Trouble(f"{name} is in the inventory, but was never looked at", fix="run: assay reconcile --once")
    near = get_close_matches(name, {*known, *declared}, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(sorted(near))}?" if near else "assay status lists them"
    raise Trouble(f"no node is called {name}", fix=hint)


def ago(at: str, now: datetime) -> str:
    """Return how long ago something was, for people."""
    return f"{spoken(max(now - moment(at), moment(at) - moment(at)))} ago"
