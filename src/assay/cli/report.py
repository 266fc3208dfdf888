"""`assay report`: build the overview and the Allure report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.desk import Desk, FleetDir, Format

app = typer.Typer(add_completion=False, help="Build the overview and the Allure report.")

Serve = Annotated[bool, typer.Option("--serve", help="Serve both on this machine until Ctrl-C.")]
Open = Annotated[bool, typer.Option("--open", help="Serve them and open the first page in the browser.")]
Points = Annotated[int, typer.Option("--points", min=1, help="Add at most this many new runs to Allure's history.")]
Hours = Annotated[float, typer.Option("--since", min=0.0, help="Tell what broke in so many hours.", metavar="HOURS")]


@app.command()
def report(
    serve: Serve = False,
    open_: Open = False,
    points: Points = 3,
    since: Hours = 24.0,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Show what broke since yesterday and where, and where every check stands, with history by run.

    Exit 0: the pages are built; 2: they could not be.
    """
    from assay.harness.report import build

    desk = Desk(fleet.resolve())
    pages = build(desk.fleet, desk.reports, desk.evidence, points, since * 3600)
    for said in pages.unread:
        typer.echo(f"left out: {said}", err=True)
    if form == "json":
        print(json.dumps({"overview": str(pages.overview), "allure": str(pages.allure)}))  # noqa: T201 — the answer
    else:
        typer.echo(f"the overview is {pages.overview}")
        typer.echo(f"the Allure report is {pages.allure}")
    if serve or open_:
        _serve(desk.reports, opened=open_)
    elif form == "text":
        typer.echo("  → browsers show Allure's over HTTP only: `assay report --open` serves both until Ctrl-C")


def _serve(folder: Path, *, opened: bool) -> None:
    """Serve the reports on a free port of this machine; a page of scripts does not load from a file."""
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
