"""`assay report`: builds the overview page and the Allure report, and serves them on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat, option
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.tell.report.status_changes import RolloutWaits


@fact
class ReportPagesAnswer:
    """Where the pages of the report are."""

    overview: str
    """The first page."""
    allure: str
    """The folder of the Allure report."""


def report(
    serve: Annotated[bool, option("--serve", "Serve all pages on this machine until Ctrl-C.")] = False,
    since: Annotated[
        float, option("--since HOURS", "Overview: show what broke in the last HOURS hours.", min=0.0)
    ] = 24.0,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Build the overview (this week of the fleet beside the last, what broke and where) and the Allure report.

    Failures that the active rollout will remove are counted apart.

    Exit codes: 0 the pages are built; 2 they could not be built.
    """
    from assay.tell.report.report_builder import build_reports

    workspace = Workspace(fleet.resolve())
    reports = workspace.reports_dir
    rollout = _read_rollout_waits(workspace)
    ledger = workspace.ledger_for_reading if workspace.has_ledger else None
    now, evidence = workspace.clock.now(), workspace.evidence_dir
    pages = build_reports(workspace.fleet, ledger, reports, evidence, since * 3600, rollout, now)
    for problem in pages.unread:
        typer.echo(f"left out: {problem}", err=True)
    lines = [f"overview: {pages.overview}", f"Allure report: {pages.allure}"]
    print_answer(ReportPagesAnswer(str(pages.overview), str(pages.allure)), form, lines)
    if serve:
        _serve_reports(reports)
    elif form == "text":
        typer.echo("  → browsers load the Allure report over HTTP only: `assay report --serve` serves all until Ctrl-C")


def _read_rollout_waits(workspace: Workspace) -> RolloutWaits:
    """Return what the active rollout explains, nothing where that cannot be read; stderr says why."""
    from assay.tell.report.status_changes import NO_ROLLOUT
    from assay.tell.views.node_sync import find_rollout_waits

    try:
        return find_rollout_waits(workspace)
    except AssayError as error:
        typer.echo(f"left out: which failures the active rollout explains: {error}", err=True)
        return NO_ROLLOUT


def _serve_reports(folder: Path) -> None:
    """Serve the reports on a free loopback port until Ctrl-C."""
    import functools
    import http.server

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        typer.echo(f"serving http://127.0.0.1:{server.server_port}/ until Ctrl-C", err=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)
