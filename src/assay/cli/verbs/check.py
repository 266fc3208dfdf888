"""`assay check`: every mistake in the inventory and the specs, with its line and a fix."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, option
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.text.lists import format_count

if TYPE_CHECKING:
    from assay.declare.check import CheckReport
    from assay.declare.problems import AlikeProblems, FleetProblem


MAX_ANNOTATIONS = 50
"""GitHub shows ten errors and ten warnings of a step, and keeps fifty of a job."""


def check(
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["text", "json", "github"],
        option(
            "--format",
            "text for people, json for machines, github for annotations of a pull request.",
            show_default=False,
        ),
    ] = "text",
    explain: Annotated[str, option("--explain CODE", "Print what a rule's code, such as ASY0011, means and why.")] = "",
) -> None:
    """Find every mistake in the inventory and the specs.

    A notice says which file of an image or of firmware cannot be fetched from here.

    Exit codes: 0 no mistakes, notices at most; 1 mistakes; 2 the repository cannot be read.
    """
    if explain:
        typer.echo(explain_code(explain.upper()))
        return
    if not fleet.is_dir():
        raise AssayError(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    from assay.declare.check import check_repository

    workspace = Workspace(fleet.resolve())
    report = check_repository(fleet, workspace.clock.now(), is_lab=workspace.home.is_lab)
    with suppress(AssayError):  # of a fleet that cannot be loaded, the report says why
        report.problems.extend(find_files_away(workspace) if not workspace.home.is_lab else ())
    if text := CHECK_FORMATTERS[format_](report):
        typer.echo(text)
    sys.exit(0 if report.is_clean else 1)


def find_files_away(workspace: Workspace) -> Iterator[FleetProblem]:
    """Yield a notice of each file of an image or of firmware that this machine cannot fetch."""
    from assay.act.boot.image_store import find_file_troubles
    from assay.declare.problems import FleetProblem

    for file, trouble in find_file_troubles(workspace.fleet, workspace.data_dir):
        path, _, line = file.where.partition(":")
        message = f"{file.name} {trouble}: {file.artifact.url}"
        if trouble:
            yield FleetProblem(
                path, int(line or 0), 0, "ASY0414", "notice", message, "see that a boot server reaches it"
            )


def explain_code(code: str) -> str:
    """Return title, severity and reason of a rule. Raises AssayError for an unknown code."""
    from assay.declare.check import load_rules

    rule = load_rules().get(code)
    if rule is None:
        raise AssayError(f"there is no rule {code}", fix=f"the rules are {', '.join(load_rules())}")
    return f"{rule.code} ({rule.severity}): {rule.title}\n  {rule.why}"


def format_check_text(report: CheckReport) -> str:
    """Return the report for people. Alike problems are folded into one."""
    from assay.declare.problems import fold_alike

    lines = []
    for alike in fold_alike(report.problems):
        problem = alike.first
        lines.append(f"{problem.where}: {problem.severity} {problem.code}: {problem.message}")
        lines += [f"  {text}" for text in _list_details(alike)]
    return "\n".join([*lines, _format_totals(report)])


def _format_totals(report: CheckReport) -> str:
    counts = f"{format_count(report.nodes, 'node')}, {format_count(report.specs, 'spec')}"
    problems = len(report.problems) - report.stand_ins
    total = format_count(problems, "problem") if problems else "no problems"
    examples = format_count(report.stand_ins, "example")
    return f"{counts}: {total}" + (f"; {examples} in place of your own values" if report.stand_ins else "")


def format_check_json(report: CheckReport) -> str:
    """Return the report as one JSON document."""
    return format_answer(report, indent=2, ensure_ascii=False)


def format_check_github(report: CheckReport) -> str:
    """Return the report as workflow commands: GitHub shows them as annotations at the changed lines.

    Alike problems are one annotation. After MAX_ANNOTATIONS, one line says how many are left out.
    """
    from assay.declare.problems import fold_alike

    folded = fold_alike(report.problems)
    annotations = [_format_annotation(alike) for alike in folded[:MAX_ANNOTATIONS]]
    if left_out := sum(len(alike.problems) for alike in folded[MAX_ANNOTATIONS:]):
        annotations.append(f"{format_count(left_out, 'problem')} more: `assay check` lists them")
    return "\n".join([*annotations, _format_totals(report)])


CHECK_FORMATTERS: dict[str, Callable[[CheckReport], str]] = {
    "text": format_check_text,
    "json": format_check_json,
    "github": format_check_github,
}


def _format_annotation(alike: AlikeProblems) -> str:
    from assay.tell.report.github import format_annotation

    problem = alike.first
    places = {"file": problem.file, "line": problem.line, "col": problem.column, "title": problem.code}
    return format_annotation(problem.severity, places, "\n".join([problem.message, *_list_details(alike)]))


def _list_details(alike: AlikeProblems) -> list[str]:
    """Return the fix, and where the other problems of this kind are."""
    fix = [f"→ {alike.first.fix}"] if alike.first.fix else []
    others = alike.describe_others()
    return [*fix, f"{others} (`--format json` lists all)"] if others else fix
