"""`assay suites list` and `assay suites verify`: what the checks are, and whether each can fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.harness.suite_verification.verification import SuiteProof, VerificationProgress

suites_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Show the checks, and prove that each can fail."
)

Patterns = Annotated[
    list[str] | None,
    typer.Option("--check", metavar="GLOB", help="Only checks whose id, or function, fits this pattern; may repeat."),
]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Share the work among this many processes.")]
ListFormat = Annotated[
    Literal["text", "json", "markdown"],
    typer.Option("--format", help="text for people, json for machines, markdown for the documentation."),
]


@suites_app.callback()
def _suites() -> None:
    """Show the checks, and prove that each can fail."""


@suites_app.command("list")
def list_checks(fleet: FleetDir = Path(), form: ListFormat = "text") -> None:
    """Show every declared check: what it asserts, of what, when, what follows, what it reads, what it must fail on."""
    from assay.harness.check_catalogue import (
        describe_checks,
        describe_modules,
        format_catalogue_markdown,
        format_catalogue_text,
    )

    declared = Workspace(fleet.resolve()).fleet
    found = describe_checks(declared)
    if form == "json":
        typer.echo(json.dumps({"checks": [one.as_json() for one in found]}, indent=1, ensure_ascii=False))
    else:
        typer.echo(
            format_catalogue_markdown(found, describe_modules(declared))
            if form == "markdown"
            else format_catalogue_text(found),
            nl=form == "text",
        )


@suites_app.command()
def verify(check: Patterns = None, jobs: Jobs = 1, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Run checks against their recordings: each passes on the good one, and fails on its cases for the stated reason.

    Exit 0: all do; 1: some do not, or nothing is recorded that must make them fail; 2: they could not be run.
    """
    from assay.harness.suite_verification.verification import verify_checks as prove

    with _progress() as progress:
        proof = prove(Workspace(fleet.resolve()).fleet, check or [], jobs=jobs, progress=progress)
    typer.echo(_as_json(proof) if form == "json" else _as_text(proof))
    raise typer.Exit(1 if proof.unproved else 0)


def _as_json(proof: SuiteProof) -> str:
    unproved = [{"check": one.check, "case": one.case, "why": one.why} for one in proof.unproved]
    plain = {"checks": list(proof.checks), "cases": proof.cases, "unproved": unproved}
    return json.dumps(plain, indent=1, ensure_ascii=False)


def _as_text(proof: SuiteProof) -> str:
    lines = [f"{one.check}{f'  [{one.case}]' if one.case else ''}\n    {one.why}" for one in proof.unproved]
    wrong = len({one.check for one in proof.unproved})
    end = (
        f"{wrong} of them not proved" if wrong else "each passes on the good recording and fails for its stated reasons"
    )
    what = f"{format_count(len(proof.checks), 'check')}, {format_count(proof.cases, 'case')}"
    return "\n".join([*lines, f"{what}: {end}"])


@contextmanager
def _progress() -> Iterator[VerificationProgress]:
    """Show how far the work is, on stderr, where a person looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("proving"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("proving", total=None)
        yield lambda done, due: bar.update(task, completed=done, total=due)
