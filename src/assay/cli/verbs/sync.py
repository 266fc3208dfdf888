"""`assay sync`: how far the fleet is what git says, and what differs where."""

from __future__ import annotations

from pathlib import Path

import typer

from assay.cli.context_line import format_answer
from assay.cli.name_check import select_nodes
from assay.cli.options import FleetDir, Nodes, Pools, TableFormat
from assay.cli.workspace import Workspace

sync_app = typer.Typer(add_completion=False)


@sync_app.command()
def sync(
    pool: Pools = None,
    node: Nodes = None,
    fleet: FleetDir = Path(),
    form: TableFormat = "text",
) -> None:
    """Show how far the nodes are what the fleet repository declares: firmware, settings and configuration.

    For each pool, show how many nodes are in sync, rolling out, drifted, held or unknown, and since when the oldest
    difference is seen. For each node that is not in sync, show what differs: the wanted value with file and line, the
    value that was seen, and since when. A node is in sync only if every check of drift has passed on fresh evidence.

    Exit codes: 0 every node is in sync; 1 some are not; 2 the ledger or the fleet cannot be read.
    """
    from assay.cli.sync_inputs import load_sync_report
    from assay.cli.verbs.sync_table import format_sync, format_sync_csv, sync_as_json

    workspace = Workspace(fleet.resolve())
    names = select_nodes(workspace.fleet, node or [], pool or [])
    report = load_sync_report(workspace, names)
    if form == "json":
        typer.echo(format_answer(sync_as_json(report), indent=1, ensure_ascii=False))
    elif form == "csv":
        typer.echo("\n".join(format_sync_csv(report)))
    else:
        typer.echo("\n".join(format_sync(report, workspace.clock.now())))
    raise typer.Exit(0 if report.is_in_sync else 1)
