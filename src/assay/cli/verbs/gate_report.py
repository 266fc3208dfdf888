"""`assay gate`: hold a run to the gates of the fleet.

`assay report`: build the overview and the Allure report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.specs.check_catalog_and_gates import Gates
    from assay.results.run_gates import GateReport

gate_app = typer.Typer(add_completion=False, help="Hold a run to the gates of the fleet.")

RunName = Annotated[str, typer.Argument(metavar="[RUN]", help="Its id, how that begins, last, last~1 …")]
Names = Annotated[list[str] | None, typer.Option("--gates", help="Only these gates, by name.", metavar="NAME")]
GateFormatOption = Annotated[
    Literal["text", "json", "github"],
    typer.Option("--format", help="text for people, json for machines, github for annotations."),
]


@gate_app.command()
def gate(run: RunName = "last", gates: Names = None, fleet: FleetDir = Path(), form: GateFormatOption = "text") -> None:
    """Say which bound a run misses, where and by how much.

    Exit 0: every bound holds; 1: one is missed; 2: it could not be told.
    """
    from assay.results.run_gates import check_gates
    from assay.results.store.run_lookup import find_run, list_runs

    desk = Workspace(fleet.resolve())
    chosen = _select_gates(desk.fleet, gates or [])
    judged = check_gates(desk.fleet, chosen, find_run(desk.reports_dir, run), list_runs(desk.reports_dir))
    typer.echo(GATE_FORMATTERS[form](judged))
    raise typer.Exit(0 if judged.holds else 1)


def _select_gates(fleet: Fleet, names: Sequence[str]) -> list[Gates]:
    if not fleet.gates:
        raise AssayError("the fleet has no gates", fix="write specs/gates/default.yaml; `assay init` makes one to copy")
    for name in names:
        if name not in fleet.gates:
            near = get_close_matches(name, fleet.gates, n=1) or sorted(fleet.gates)
            raise AssayError(f"there are no gates {name!r}", fix=f"did you mean {near[0]}?")
    return [one for name, one in fleet.gates.items() if not names or name in names]


def _as_text(judged: GateReport) -> str:
    said = [f"{'holds ' if one.holds else 'MISSED'} {one.says}  {one.source}" for one in judged.bounds]
    return "\n".join([*said, _format_summary(judged)])


def _as_json(judged: GateReport) -> str:
    bounds = [one.as_json() for one in judged.bounds]
    return json.dumps({"run": judged.run, "before": judged.before, "holds": judged.holds, "bounds": bounds})


def _as_github(judged: GateReport) -> str:
    from assay.results.formats.github_annotations import format_annotation

    told = []
    for one in judged.bounds:
        if not one.holds:
            file, _, line = one.source.rpartition(":")
            title = f"gate {one.gates}: {one.pool or 'new failures'}"
            told.append(format_annotation("error", {"file": file, "line": line, "title": title}, one.says))
    return "\n".join([*told, _format_summary(judged)])


def _format_summary(judged: GateReport) -> str:
    missed = sum(not one.holds for one in judged.bounds)
    said = f"{missed} of {len(judged.bounds)} bounds missed" if missed else f"all {len(judged.bounds)} bounds hold"
    return f"run {judged.run}: {said}"


GATE_FORMATTERS: dict[str, Callable[[GateReport], str]] = {"text": _as_text, "json": _as_json, "github": _as_github}


report_app = typer.Typer(add_completion=False, help="Build the overview and the Allure report.")

Serve = Annotated[bool, typer.Option("--serve", help="Serve both on this machine until Ctrl-C.")]
Open = Annotated[bool, typer.Option("--open", help="Serve them and open the first page in the browser.")]
Points = Annotated[int, typer.Option("--points", min=1, help="Add at most this many new runs to Allure's history.")]
Hours = Annotated[float, typer.Option("--since", min=0.0, help="Tell what broke in so many hours.", metavar="HOURS")]


@report_app.command()
def report(
    serve: Serve = False,
    open_: Open = False,
    points: Points = 3,
    since: Hours = 24.0,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show what broke since yesterday and where, and where every check stands, with history by run.

    Exit 0: the pages are built; 2: they could not be.
    """
    from assay.results.report.report_builder import build_reports

    desk = Workspace(fleet.resolve())
    pages = build_reports(desk.fleet, desk.reports_dir, desk.evidence_dir, points, since * 3600)
    for said in pages.unread:
        typer.echo(f"left out: {said}", err=True)
    if form == "json":
        print(json.dumps({"overview": str(pages.overview), "allure": str(pages.allure)}))  # noqa: T201 — the answer
    else:
        typer.echo(f"the overview is {pages.overview}")
        typer.echo(f"the Allure report is {pages.allure}")
    if serve or open_:
        _serve_reports(desk.reports_dir, opened=open_)
    elif form == "text":
        typer.echo("  → browsers show Allure's over HTTP only: `assay report --open` serves both until Ctrl-C")


def _serve_reports(folder: Path, *, opened: bool) -> None:
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
