"""`assay check`: every mistake in the inventory and the specs, with its line and a fix.

With --schedulers, it asks each scheduler of the inventory about its nodes, as a pass would. It only reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.adapters.scheduler import SchedulerAdapter, group_by_scheduler, load_scheduler_adapter
from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.text.lists import fold_names, format_count, format_list
from assay.model.text.safe_text import escape_line

if TYPE_CHECKING:
    from assay.declare.check import CheckReport
    from assay.declare.problems import AlikeProblems


MAX_ANNOTATIONS = 50
"""GitHub shows ten errors and ten warnings of a step, and keeps fifty of a job."""
GCC_SEVERITIES = {"error": "error", "warning": "warning", "notice": "note"}
"""Our severities in the words of compilers, by which editors tell them apart."""

check_app = typer.Typer(add_completion=False)


@check_app.command()
def check(
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["text", "json", "github", "editor"],
        typer.Option(
            "--format",
            help="text for people, json for machines, github for annotations of a pull request, editor for one line"
            " each as compilers print.",
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
    from assay.declare.check import check_repository

    workspace = Workspace(fleet.resolve())
    report = check_repository(fleet, workspace.clock.now(), is_lab=workspace.home.is_lab)
    if text := CHECK_FORMATTERS[format_](report):
        typer.echo(text)
    if schedulers and report.is_clean:
        _ask_schedulers(workspace)
    sys.exit(0 if report.is_clean else 1)


def _ask_schedulers(workspace: Workspace) -> None:
    """Print each scheduler's answer to stderr, where it disturbs no JSON. Exits with 2 if one is not as it must be."""
    answers = list(ask_schedulers(workspace.fleet))
    for answer in answers:
        typer.echo(str(answer), err=True)
    if any(answer.trouble for answer in answers):
        sys.exit(2)


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


def format_check_editor(report: CheckReport) -> str:
    """Return every problem on one line, as GCC writes them: `file:line:column: error: message [code]`.

    Vim, Emacs and VS Code (`$gcc`) know this form. Alike problems are not folded: each marks its own line.
    """
    lines = []
    for problem in report.problems:
        place = f"{escape_line(problem.file)}:{max(problem.line, 1)}:{max(problem.column, 1)}"
        text = f"{problem.message} → {problem.fix}" if problem.fix else problem.message
        lines.append(f"{place}: {GCC_SEVERITIES[problem.severity]}: {escape_line(text)} [{problem.code}]")
    return "\n".join(lines)


CHECK_FORMATTERS: dict[str, Callable[[CheckReport], str]] = {
    "text": format_check_text,
    "json": format_check_json,
    "github": format_check_github,
    "editor": format_check_editor,
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


@dataclass(frozen=True, slots=True)
class SchedulerAnswer:
    """One scheduler's answer about its `nodes`; `trouble` is "" if it knows all of them."""

    nodes: tuple[str, ...]
    trouble: str = ""

    def __str__(self) -> str:
        names = format_list(fold_names(self.nodes), 4)
        return f"{names}: {self.trouble or 'the scheduler says who uses ' + format_count(len(self.nodes), 'node')}"


def ask_schedulers(
    fleet: Fleet, workloads: Callable[[Node], SchedulerAdapter] = load_scheduler_adapter
) -> Iterator[SchedulerAnswer]:
    """Yield the answer of each scheduler, and of nodes that it does not know."""
    groups = group_by_scheduler(fleet.nodes.values(), workloads)
    for node, reason in groups.errors.items():
        yield SchedulerAnswer((node,), reason)
    for scheduler, names in groups.nodes.items():
        try:
            known = scheduler.read_statuses(names)
        except AssayError as error:
            yield SchedulerAnswer(tuple(names), str(error) + (f"\n  → {error.fix}" if error.fix else ""))
            continue
        if answered := tuple(name for name in names if name in known):
            yield SchedulerAnswer(answered)
        if strangers := tuple(name for name in names if name not in known):
            fix = "give the node the same name in the inventory and in its scheduler"
            yield SchedulerAnswer(strangers, f"the scheduler does not know them\n  → {fix}")
