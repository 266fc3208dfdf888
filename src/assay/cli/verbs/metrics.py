"""`assay metrics`: the metrics of fleet and controller, as text for Prometheus."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import FleetDir
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

metrics_app = typer.Typer(add_completion=False)

TEXTFILE_SUFFIX = ".prom"


@metrics_app.command()
def metrics(
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Replace this file, which node_exporter's textfile collector reads."),
    ] = None,
    fleet: FleetDir = Path(),
) -> None:
    """Print the metrics of docs/metrics.md in Prometheus' text format, counted from the ledger.

    `assay serve` and `assay reconcile --metrics` give the same to a Prometheus that asks.

    Exit codes: 0 printed; 2 the ledger or the fleet cannot be read.
    """
    from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics

    if to and to.suffix != TEXTFILE_SUFFIX:
        fix = f"give it a name that ends with {TEXTFILE_SUFFIX}"
        raise AssayError("node_exporter reads no such file", where=str(to), fix=fix)
    context = Workspace(fleet.resolve()).controller_context(reads_only=True)
    text = format_metrics(FleetMetrics(lambda: context)).decode()
    if to is None:
        typer.echo(text, nl=False)
    else:
        # A rename replaces the file at once: a reader never sees half of it.
        draft = to.with_name(f".{to.name}.{os.getpid()}")
        draft.write_text(text)
        draft.replace(to)
