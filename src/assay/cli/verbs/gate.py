"""`assay gate`: tests whether a run meets the fleet's gates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, RunName, option
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.validate.results.run_gates import GateReport


GateFormat = Annotated[
    Literal["text", "json", "github"],
    option(
        "--format", "text for people, json for machines, github for annotations of a pull request.", show_default=False
    ),
]


def gate(run: RunName = "last", fleet: FleetDir = Path(), form: GateFormat = "text") -> None:
    """Test a run against the fleet's gates (specs/gates). Show by how much each bound is missed, and where.

    Exit codes: 0 every bound holds; 1 a bound is missed; 2 the run or the gates cannot be read.
    """
    from assay.ledger.runs.reader import find_run, list_runs
    from assay.validate.results.run_gates import check_gates

    workspace = Workspace(fleet.resolve())
    if not workspace.fleet.gates:
        fix = "write specs/gates/default.yaml; the fleet that `assay init` creates has an example"
        raise AssayError("the fleet has no gates", fix=fix)
    gates, reports = list(workspace.fleet.gates.values()), workspace.reports_dir
    report = check_gates(workspace.fleet, gates, find_run(reports, run), list_runs(reports), workspace.clock.now())
    typer.echo(GATE_FORMATTERS[form](report))
    raise typer.Exit(0 if report.holds else 1)


def _format_text(report: GateReport) -> str:
    lines = [f"{'holds ' if bound.holds else 'MISSED'} {bound.says}  {bound.source}" for bound in report.bounds]
    return "\n".join([*lines, _format_summary(report)])


def _format_github(report: GateReport) -> str:
    from assay.tell.report.github import format_annotation

    annotations = []
    for bound in report.bounds:
        if not bound.holds:
            file, _, line = bound.source.rpartition(":")
            title = f"gate {bound.gates}: {bound.pool or bound.what.replace('_', ' ')}"
            annotations.append(format_annotation("error", {"file": file, "line": line, "title": title}, bound.says))
    return "\n".join([*annotations, _format_summary(report)])


def _format_summary(report: GateReport) -> str:
    missed = sum(not bound.holds for bound in report.bounds)
    text = f"{missed} of {len(report.bounds)} bounds missed" if missed else f"all {len(report.bounds)} bounds hold"
    return f"run {report.run}: {text}"


GATE_FORMATTERS: dict[str, Callable[[GateReport], str]] = {
    "text": _format_text,
    "json": format_answer,
    "github": _format_github,
}
