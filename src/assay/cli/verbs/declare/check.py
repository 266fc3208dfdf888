"""`assay check`: every mistake in the inventory and the specs, with its line and a fix."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.options import FleetDir
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.fleet.repository_check import CheckReport
    from assay.fleet.validation_problems import FleetProblem

check_app = typer.Typer(add_completion=False)


@check_app.command()
def check(
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["text", "json", "github"],
        typer.Option(
            "--format",
            help="text for people, json for machines, github for annotations of a pull request.",
            show_default=False,
        ),
    ] = "text",
    explain: Annotated[
        str, typer.Option(help="Print what a rule's code, such as ASY0011, means and why.", metavar="CODE")
    ] = "",
    schedulers: Annotated[
        bool, typer.Option("--schedulers", help="Then ask each scheduler about its nodes. This changes nothing.")
    ] = False,
) -> None:
    """Find every mistake in the inventory and the specs.

    Exit codes: 0 no mistakes, notices at most; 1 mistakes; 2 the repository cannot be read, or with --schedulers a
    scheduler gives no answer, is too old, or does not know a node.
    """
    if explain:
        typer.echo(explain_code(explain.upper()))
        return
    if not fleet.is_dir():
        raise AssayError(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    from assay.fleet.repository_check import check_repository

    workspace = Workspace(fleet.resolve())
    report = check_repository(fleet, workspace.clock.now())
    typer.echo(CHECK_FORMATTERS[format_](report))
    if schedulers and report.is_clean:
        _ask_schedulers(workspace)
    sys.exit(0 if report.is_clean else 1)


def _ask_schedulers(workspace: Workspace) -> None:
    """Print each scheduler's answer to stderr, where it disturbs no JSON. Exits with 2 if one is not as it must be."""
    from assay.cli.scheduler_preflight import ask_schedulers

    answers = list(ask_schedulers(workspace.fleet))
    for answer in answers:
        typer.echo(str(answer), err=True)
    if any(answer.trouble for answer in answers):
        sys.exit(2)


def explain_code(code: str) -> str:
    """Return title, severity and reason of a rule. Raises AssayError for an unknown code."""
    from assay.fleet.repository_check import load_rules

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
    """Return the report as workflow commands: GitHub shows them as annotations at the changed lines."""
    annotations = [_format_annotation(problem) for problem in report.problems]
    return "\n".join([*annotations, format_check_text(report).splitlines()[-1]])


CHECK_FORMATTERS: dict[str, Callable[[CheckReport], str]] = {
    "text": format_check_text,
    "json": format_check_json,
    "github": format_check_github,
}


def _format_problem(problem: FleetProblem) -> str:
    line = f"{problem.where}: {problem.severity} {problem.code}: {problem.message}"
    return f"{line}\n  → {problem.fix}" if problem.fix else line


def _format_annotation(problem: FleetProblem) -> str:
    from assay.results.formats.github_annotations import format_annotation

    places = {"file": problem.file, "line": problem.line, "col": problem.column, "title": problem.code}
    message = f"{problem.message}\n→ {problem.fix}" if problem.fix else problem.message
    return format_annotation(problem.severity, places, message)
