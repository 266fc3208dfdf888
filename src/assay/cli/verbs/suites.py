"""`assay suites list` shows the checks; `assay suites verify` proves that each can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, Jobs, OutputFormat, complete_checks, option
from assay.cli.output import show_progress
from assay.cli.workspace import Workspace
from assay.model.facts import fact
from assay.model.text.lists import format_count

if TYPE_CHECKING:
    from assay.validate.check_catalogue import CheckDescription
    from assay.validate.must_fail_verification import SuiteProof


@fact
class SuitesListAnswer:
    """Every check of the fleet."""

    checks: list[CheckDescription]
    """The checks, by file and name."""


suites_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="List the checks, and prove that each check can fail."
)

Patterns = Annotated[
    list[str] | None,
    option("--check GLOB", "Only checks with this id or function name; may be repeated.", complete=complete_checks),
]
ListFormat = Annotated[
    Literal["text", "json", "markdown"],
    option("--format", "text for people, json for machines, markdown for documentation.", show_default=False),
]


@suites_app.command("list")
def list_checks(fleet: FleetDir = Path(), form: ListFormat = "text") -> None:
    """List every check: what it asserts, its subjects and phases, its fault, and the readings that it uses."""
    from assay.validate.check_catalogue import (
        describe_checks,
        describe_modules,
        format_catalogue_markdown,
        format_catalogue_text,
    )

    declared = Workspace(fleet.resolve()).fleet
    checks = describe_checks(declared)
    if form == "json":
        print_answer(SuitesListAnswer(checks), form, ())
    elif form == "markdown":
        typer.echo(format_catalogue_markdown(checks, describe_modules(declared)), nl=False)
    else:
        typer.echo(format_catalogue_text(checks))


@suites_app.command()
def verify(check: Patterns = None, jobs: Jobs = 1, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Run checks on their recordings: each must pass on the good one and fail on its cases for the stated reason.

    Exit codes: 0 all do; 1 some do not, or lack a case on which they must fail; 2 the checks cannot be run.
    """
    from assay.validate.must_fail_verification import verify_checks

    declared = Workspace(fleet.resolve()).fleet
    with show_progress("verified") as show:

        def progress(done: int, total: int) -> None:
            show({"verified": (done, total)})

        proof = verify_checks(declared, check or [], jobs=jobs, progress=progress)
    print_answer(proof, form, _format_text(proof))
    raise typer.Exit(1 if proof.unproved else 0)


def _format_text(proof: SuiteProof) -> Iterator[str]:
    for failure in proof.unproved:
        case = f"  [{failure.case}]" if failure.case else ""
        yield f"{failure.check}{case}\n    {failure.why}"
    unproved = len({failure.check for failure in proof.unproved})
    proved = "each passes on the good recording and fails for its stated reasons"
    counts = f"{format_count(len(proof.checks), 'check')}, {format_count(proof.cases, 'case')}"
    yield f"{counts}: {f'{unproved} of them not proved' if unproved else proved}"
