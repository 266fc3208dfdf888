"""`assay report`: builds the overview page and the Allure report, and serves them on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace

report_app = typer.Typer(add_completion=False)


@report_app.command()
def report(
    serve: Annotated[bool, typer.Option("--serve", help="Serve both pages on this machine until Ctrl-C.")] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Serve both pages, and open the overview in the browser.")
    ] = False,
    points: Annotated[
        int, typer.Option("--points", metavar="N", min=1, help="Add at most N new runs to Allure's history.")
    ] = 3,
    since: Annotated[
        float,
        typer.Option("--since", metavar="HOURS", min=0.0, help="Overview: show what broke in the last HOURS hours."),
    ] = 24.0,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Build the overview page (what broke and where) and the Allure report (every check, with its history by run).

    Exit codes: 0 the pages are built; 2 they could not be built.
    """
    from assay.results.report.report_builder import build_reports

    workspace = Workspace(fleet.resolve())
    reports = workspace.reports_dir
    pages = build_reports(workspace.fleet, reports, workspace.evidence_dir, points, since * 3600)
    for problem in pages.unread:
        typer.echo(f"left out: {problem}", err=True)
    if form == "json":
        print(json.dumps({"overview": str(pages.overview), "allure": str(pages.allure)}))  # noqa: T201 — the answer
    else:
        typer.echo(f"overview: {pages.overview}")
        typer.echo(f"Allure report: {pages.allure}")
    if serve or open_:
        _serve_reports(reports, opened=open_)
    elif form == "text":
        typer.echo("  → browsers load the Allure report over HTTP only: `assay report --open` serves both until Ctrl-C")


def _serve_reports(folder: Path, *, opened: bool) -> None:
    """Serve the reports on a free loopback port until Ctrl-C."""
    import functools
    import http.server
    import webbrowser

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        typer.echo(f"serving {address} until Ctrl-C", err=True)
        if opened:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)
