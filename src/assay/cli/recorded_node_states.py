"""Reads node states from the ledger for the verbs, and the parts in a node that were returned before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.cli.name_check import suggest_names
from assay.cli.workspace import Workspace
from assay.decide.rollouts.rollout_history import ROLLOUT_KINDS, RolloutHistory, project_rollouts
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, describe_returned_part, find_returned_parts
from assay.decide.state.node_state import NodeState
from assay.decide.state.node_state_projection import project_node_states
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry


def load_fleet_records(workspace: Workspace) -> tuple[list[NodeState], dict[str, list[str]], RolloutHistory]:
    """Return the node states, node → notes on parts in it that were sent back once, and the rollouts."""
    entries = workspace.read_entries()
    rollouts = project_rollouts(entry for entry in entries if entry.kind in ROLLOUT_KINDS)
    return _sort_by_pool(project_node_states(entries)), _describe_returned_by_node(entries), rollouts


def find_node_state(workspace: Workspace, name: str) -> NodeState:
    """Return the state of one node. Raises AssayError for a node that is unknown or was never observed."""
    return pick_node_state(workspace, workspace.read_node_states(), name)


def pick_node_state(workspace: Workspace, states: Iterable[NodeState], name: str) -> NodeState:
    """Return the state of one node out of all. Raises AssayError for one that is unknown or was never observed."""
    known = {state.node: state for state in states}
    if name in known:
        return known[name]
    declared = list(workspace.fleet.nodes)
    if name in declared:
        raise AssayError(f"{name} is in the inventory but was never observed", fix="run: assay reconcile --once")
    hint = suggest_names(name, {*known, *declared}, "`assay status` lists the nodes")
    raise AssayError(f"there is no node {name}", fix=hint)


def _describe_returned_by_node(entries: Iterable[LedgerEntry]) -> dict[str, list[str]]:
    relevant = [entry for entry in entries if entry.kind in ASSET_ENTRY_KINDS]
    nodes = {entry.node for entry in relevant if entry.kind == "part.returned"}
    parts = {name: find_returned_parts(entry for entry in relevant if entry.node == name) for name in nodes}
    return {name: [describe_returned_part(entry) for entry in found] for name, found in parts.items() if found}


def _sort_by_pool(states: Mapping[str, NodeState]) -> list[NodeState]:
    return sorted(states.values(), key=lambda state: (state.pool, state.node))
