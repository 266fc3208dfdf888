"""`assay check`: every problem in the inventory and the specs, at its line, with the fix.

`assay init`: a fleet repository of one's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.workspace import FleetDir, Workspace
from assay.model.errors import AssayError
from assay.model.text_lists import format_count
from assay.results.formats.github_annotations import format_annotation

if TYPE_CHECKING:
    from assay.fleet.check import CheckReport
    from assay.fleet.validation_problems import FleetProblem

check_app = typer.Typer(add_completion=False)


@check_app.command()
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
        typer.echo(explain_code(explain.upper()))
        return
    if not fleet.is_dir():
        raise AssayError(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    from assay.fleet.check import check_repository

    report = check_repository(fleet, Workspace(fleet.resolve()).clock.now())
    typer.echo(CHECK_FORMATTERS[format_](report))
    sys.exit(0 if report.is_clean else 1)


def explain_code(code: str) -> str:
    """Return the rule of a code. Raises Trouble for one that does not exist."""
    from assay.fleet.check import load_rules

    rule = load_rules().get(code)
    if rule is None:
        raise AssayError(f"there is no rule {code}", fix=f"the rules are {', '.join(load_rules())}")
    return f"{rule.code} ({rule.severity}): {rule.title}\n  {rule.why}"


def format_check_text(report: CheckReport) -> str:
    """Return the report for people."""
    counts = f"{format_count(report.nodes, 'node')}, {format_count(report.specs, 'spec')}"
    total = format_count(len(report.problems), "problem") if report.problems else "no problems"
    return "\n".join([*(_format_problem(problem) for problem in report.problems), f"{counts}: {total}"])


def format_check_json(report: CheckReport) -> str:
    """Return the report as one JSON document."""
    return json.dumps(report.as_json(), indent=2, ensure_ascii=False)


def format_check_github(report: CheckReport) -> str:
    """Return the report as workflow commands, which GitHub shows as annotations at the changed lines."""
    return "\n".join(
        [*(_annotation(problem) for problem in report.problems), format_check_text(report).splitlines()[-1]]
    )


CHECK_FORMATTERS: dict[str, Callable[[CheckReport], str]] = {
    "text": format_check_text,
    "json": format_check_json,
    "github": format_check_github,
}


def _format_problem(problem: FleetProblem) -> str:
    lines = [f"{problem.where}: {problem.severity} {problem.code}: {problem.message}"]
    return "\n".join([*lines, f"  → {problem.fix}"] if problem.fix else lines)


def _annotation(problem: FleetProblem) -> str:
    places = {"file": problem.file, "line": problem.line, "col": problem.column, "title": problem.code}
    message = f"{problem.message}\n→ {problem.fix}" if problem.fix else problem.message
    return format_annotation(problem.severity, places, message)


init_app = typer.Typer(add_completion=False)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is empty or not there yet.")]

NEXT_STEPS = """\
{folder} is a fleet repository now: {nodes} nodes to put your own in place of, and everything that runs on them.
Next:
  cd {folder}
  assay check
  git add --all && git commit --message "Our fleet"
README.md there goes through the first hour."""


@init_app.command()
def init(folder: Folder) -> None:
    """Make a fleet repository of one's own, which `assay check` accepts and whose suites run against the lab."""
    from assay.fleet.fleet_loader import load_fleet
    from assay.starter.new_repository import create_repository

    create_repository(folder)
    typer.echo(NEXT_STEPS.format(folder=folder, nodes=len(load_fleet(folder).nodes)))
