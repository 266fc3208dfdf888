"""`assay report`: build the Allure report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.desk import Desk, FleetDir, Format

app = typer.Typer(add_completion=False, help="Build the Allure report.")

Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]
Points = Annotated[int, typer.Option("--points", min=1, help="Add at most this many new runs to the history.")]


@app.command()
def report(open_: Open = False, points: Points = 3, fleet: FleetDir = Path(), form: Format = "text") -> None:
    """Show where every check stands, from the newest outcome of each, with history by run.

    Exit 0: the page is built; 2: it could not be.
    """
    from assay.harness.report import build

    desk = Desk(fleet.resolve())
    page = build(desk.fleet, desk.reports, points)
    if form == "json":
        print(json.dumps({"page": str(page)}))  # noqa: T201 — the answer
    else:
        typer.echo(f"the report is {page}")
        typer.echo("  → browsers show it over HTTP only: `assay report --open` serves it until Ctrl-C")
    if open_:
        _serve(page.parent)


def _serve(folder: Path) -> None:
    """Serve the report on a free port of this machine and open it; a page of scripts does not load from a file."""
    import functools
    import http.server
    import webbrowser

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        typer.echo(f"serving {address} until Ctrl-C", err=True)
        webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("", err=True)
