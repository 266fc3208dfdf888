"""`assay check`: every problem in the inventory and the specs, at its line, with the fix."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.desk import Desk, FleetDir
from assay.harness.results.workflow import annotation
from assay.model.errors import Trouble
from assay.model.spans import counted

if TYPE_CHECKING:
    from assay.fleet.check import Report
    from assay.fleet.problem import Problem

app = typer.Typer(add_completion=False)


@app.command()
def check(
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["text", "json", "github"],
        typer.Option("--format", help="text for people, json for machines, github for annotations."),
    ] = "text",
    explain: Annotated[str, typer.Option(help="Say what a code means and why it matters.", metavar="CODE")] = "",
) -> None:
    """Find every problem in the inventory and the specs. Exit codes: 0 none, or notices only; 1 some."""
    if explain:
        typer.echo(explained(explain.upper()))
        return
    if not fleet.is_dir():
        raise Trouble(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    from assay.fleet.check import examine

    report = examine(fleet, Desk(fleet.resolve()).clock.now())
    typer.echo(SHAPES[format_](report))
    sys.exit(0 if report.well else 1)


def explained(code: str) -> str:
    """Return the rule of a code. Raises Trouble for one that does not exist."""
    from assay.fleet.rules.book import rules

    rule = rules().get(code)
    if rule is None:
        raise Trouble(f"there is no rule {code}", fix=f"the rules are {', '.join(rules())}")
    return f"{rule.code} ({rule.severity}): {rule.title}\n  {rule.why}"


def as_text(report: Report) -> str:
    """Return the report for people."""
    counts = f"{counted(report.nodes, 'node')}, {counted(report.specs, 'spec')}"
    total = counted(len(report.problems), "problem") if report.problems else "no problems"
    return "\n".join([*(_told(problem) for problem in report.problems), f"{counts}: {total}"])


def as_json(report: Report) -> str:
    """Return the report as one JSON document."""
    return json.dumps(report.as_json(), indent=2, ensure_ascii=False)


def as_github(report: Report) -> str:
    """Return the report as workflow commands, which GitHub shows as annotations at the changed lines."""
    return "\n".join([*(_annotation(problem) for problem in report.problems), as_text(report).splitlines()[-1]])


SHAPES: dict[str, Callable[[Report], str]] = {"text": as_text, "json": as_json, "github": as_github}


def _told(problem: Problem) -> str:
    lines = [f"{problem.where}: {problem.severity} {problem.code}: {problem.message}"]
    return "\n".join([*lines, f"  → {problem.fix}"] if problem.fix else lines)


def _annotation(problem: Problem) -> str:
    places = {"file": problem.file, "line": problem.line, "col": problem.column, "title": problem.code}
    message = f"{problem.message}\n→ {problem.fix}" if problem.fix else problem.message
    return annotation(problem.severity, places, message)
