"""Reads for the verbs how far nodes are what the fleet repository declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.cli.workspace import Workspace

if TYPE_CHECKING:
    from assay.decide.drift.sync_report import SyncReport


def load_sync_report(workspace: Workspace, nodes: Sequence[str] | None = None) -> SyncReport:
    """Return how these nodes (None: all) compare with the repository. Creates no ledger. Raises AssayError."""
    from assay.act.loop.sync_reading import read_sync

    states = {state.node: state for state in workspace.read_node_states()}
    ledger = workspace.ledger_for_reading if workspace.has_ledger else None
    return read_sync(workspace.fleet, ledger, states, workspace.clock.now(), nodes)
