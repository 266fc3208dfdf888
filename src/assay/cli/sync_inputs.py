"""Reads for the verbs how far nodes are what the fleet repository declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.cli.workspace import Workspace
from assay.ledger.location import locate_existing_ledger

if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState
    from assay.lifecycle.sync.sync_report import NodeSync, SyncReport


def load_sync_report(workspace: Workspace, nodes: Sequence[str] | None = None) -> SyncReport:
    """Return how these nodes (None: all) compare with the repository. Creates no ledger. Raises AssayError."""
    from assay.controller.sync_reading import read_sync

    states = {state.node: state for state in workspace.read_node_states()}
    ledger = workspace.ledger_for_reading if locate_existing_ledger(workspace.data_dir) else None
    return read_sync(workspace.fleet, ledger, states, workspace.clock.now(), nodes)


def find_node_sync(workspace: Workspace, state: NodeState) -> NodeSync | None:
    """Return how one node compares; None for a node that the inventory no longer has, or that is gone for good.

    None also for a fleet without a policy: nothing says then what drift is.
    """
    from assay.controller.sync_reading import read_sync

    fleet = workspace.fleet
    if state.node not in fleet.nodes or len(fleet.policies) != 1:
        return None
    ledger, now = workspace.ledger_for_reading, workspace.clock.now()
    return next(iter(read_sync(fleet, ledger, {state.node: state}, now, [state.node]).nodes), None)
