"""Who is on the roll: the stories of the enrolled nodes, and what to say about a name that is not among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches

from assay.cli.workspace import Workspace
from assay.ledger.location import read_all_entries
from assay.lifecycle.asset_history import ASSET_ENTRY_KINDS, find_returned_parts
from assay.lifecycle.asset_history import describe_returned_part as in_words
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import project_node_states
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_duration, parse_time


def load_node_states(desk: Workspace) -> list[NodeState]:
    """Return the story of every enrolled node, by pool and name. Makes no ledger where there is none."""
    return _sort_by_pool(project_node_states(read_all_entries(desk.ledger_location)))


def load_node_states_and_returned_parts(desk: Workspace) -> tuple[list[NodeState], dict[str, list[str]]]:
    """Return the stories, and by node what is to be said of parts in it that were sent back once."""
    entries = read_all_entries(desk.ledger_location)
    return _sort_by_pool(project_node_states(entries)), _describe_returned_by_node(entries)


def describe_returned_parts(desk: Workspace, node: str) -> list[str]:
    """Return what is to be said of parts in a node that were sent back once."""
    return _describe_returned_by_node(desk.ledger.entries(node, ASSET_ENTRY_KINDS)).get(node, [])


def _describe_returned_by_node(entries: Iterable[LedgerEntry]) -> dict[str, list[str]]:
    ours = [entry for entry in entries if entry.kind in ASSET_ENTRY_KINDS]
    nodes = {entry.node for entry in ours if entry.kind == "part.returned"}
    here = {name: find_returned_parts(entry for entry in ours if entry.node == name) for name in nodes}
    return {name: [in_words(entry) for entry in back] for name, back in here.items() if back}


def _sort_by_pool(found: Mapping[str, NodeState]) -> list[NodeState]:
    return sorted(found.values(), key=lambda story: (story.pool, story.node))


def find_node_state(desk: Workspace, name: str) -> NodeState:
    """Return the story of one node. Raises Trouble for an unknown one, with the names that are near."""
    known = {story.node: story for story in load_node_states(desk)}
    if name in known:
        return known[name]
    declared = list(desk.fleet.nodes)
    if name in declared:
        raise AssayError(f"{name} is in the inventory, but was never looked at", fix="run: assay reconcile --once")
    near = get_close_matches(name, {*known, *declared}, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(sorted(near))}?" if near else "assay status lists them"
    raise AssayError(f"no node is called {name}", fix=hint)


def format_ago(at: str, now: datetime) -> str:
    """Return how long ago something was, for people."""
    return f"{format_duration(max(now - parse_time(at), parse_time(at) - parse_time(at)))} ago"
