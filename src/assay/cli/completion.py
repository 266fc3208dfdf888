"""What a shell completes: names of the fleet where a command wants one; nothing where no fleet can be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from assay.cli.workspace import Workspace
from assay.model.errors import AssayError


def _from_fleet(list_names: Callable[[Workspace], Iterable[str]]) -> Callable[[Any, str], list[str]]:
    """Return what Typer calls with the context and the beginning of a word."""

    def complete(ctx: Any, incomplete: str) -> list[str]:
        named = ctx.params.get("fleet") or os.environ.get("ASSAY_FLEET") or ""
        try:
            names = list_names(Workspace(Path(named).resolve()))
            return sorted({name for name in names if name.startswith(incomplete)})
        except (AssayError, OSError):
            return []

    return complete


def _list_runs(workspace: Workspace) -> Iterable[str]:
    from assay.ledger.runs.run_lookup import list_runs

    return ("last", *(file.parent.name for file in list_runs(workspace.reports_dir)))


def _list_checks_of_last_run(workspace: Workspace) -> Iterable[str]:
    from assay.ledger.runs.reader import StoredRun
    from assay.ledger.runs.run_lookup import find_run

    with StoredRun.open_whole(find_run(workspace.reports_dir, "last")) as stored:
        return [name.rpartition("::")[2] for (name,) in stored.connection.execute("SELECT name FROM check_")]


complete_nodes = _from_fleet(lambda workspace: workspace.fleet.nodes)
complete_pools = _from_fleet(lambda workspace: (node.pool for node in workspace.fleet.nodes.values()))
complete_racks = _from_fleet(lambda workspace: (node.rack for node in workspace.fleet.nodes.values()))
complete_phases = _from_fleet(lambda workspace: workspace.fleet.phases)
complete_checks = _from_fleet(_list_checks_of_last_run)
complete_runs = _from_fleet(_list_runs)
