"""`assay report`: builds the overview page and the Allure report, and serves them on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, TableFormat, option
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.text.csv_rows import format_csv
from assay.model.text.safe_text import escape_line

if TYPE_CHECKING:
    from assay.tell.report.status_changes import RolloutWaits
    from assay.tell.views.pool_delivery import ServiceLevelRow


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
    month: Annotated[
        str, option("--month YYYY-MM", "Show what pools delivered in this month of their service levels instead.")
    ] = "",
    fleet: FleetDir = Path(),
    form: TableFormat = "text",
) -> None:
    """Build the overview (this week of the fleet beside the last, what broke and where) and the Allure report.

    Failures that the active rollout will remove are counted apart.

    With --month: for each pool that declares a `service_level`, the node-hours delivered, lost and not known, the
    credit, and what each cause cost.

    Exit codes: 0 the pages are built; 2 they could not be built.
    """
    from assay.tell.report.report_builder import build_reports

    workspace = Workspace(fleet.resolve())
    if month:
        _print_service_levels(workspace, month, form)
        return
    if form == "csv":
        raise AssayError("the pages are no table", fix="use --month YYYY-MM for service levels as CSV")
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


def _print_service_levels(workspace: Workspace, month: str, form: TableFormat) -> None:
    from dataclasses import fields

    from assay.act.ingest.silent_nodes import read_unknown_times
    from assay.model.timestamps import parse_time
    from assay.tell.views.pool_delivery import ServiceLevelRow, list_service_levels

    try:
        begin = parse_time(f"{month}-01")
    except ValueError:
        raise AssayError(f"{month!r} is not a month", fix="use --month 2026-11") from None
    fleet, states, now = workspace.fleet, workspace.read_node_states(), workspace.clock.now()
    unknown = read_unknown_times(fleet, workspace.ledger_for_reading, states, begin, now, {}) if states else {}
    rows = list(list_service_levels(fleet, states, begin, now, unknown))
    if form == "csv":
        typer.echo("\n".join(format_csv([each.name for each in fields(ServiceLevelRow)], rows)))
        return
    print_answer(rows, form, map(_format_level, rows) if rows else [f"no pool had a service level in {month}"])


def _format_level(row: ServiceLevelRow) -> str:
    if row.cause:
        return escape_line(f"  {row.lost_hours:.1f} h lost, {row.cause}: {', '.join(row.nodes) or 'no node'}")
    share = "not known" if row.percent is None else f"{row.percent:.2f} %"
    hours = f"{row.delivered_hours:.1f} of {row.declared_hours:.1f} node-hours, {row.unknown_hours:.1f} not known"
    credit = f"credit {row.credit_percent or 0:g} %, at most {row.credit_at_most_percent:g} %"
    return f"pool {row.pool}, {row.month}: {share} of {row.agreed_percent:g} % ({hours}); {credit}"


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
