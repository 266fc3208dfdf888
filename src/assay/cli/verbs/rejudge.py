"""`assay rejudge`: judges the stored evidence of a run again, and shows the differences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, Jobs, OutputFormat, RunName, option
from assay.cli.output import show_progress
from assay.cli.workspace import Workspace
from assay.model.facts import fact
from assay.model.text.lists import format_count

if TYPE_CHECKING:
    from assay.tell.report.registry import ComparisonAnswer
    from assay.validate.results.comparison_summary import RunDifferences
    from assay.validate.runs.rejudge import RejudgedRun


@fact
class RejudgeHead:
    """What of a rejudging comes before the comparison."""

    run: str
    """The id of the run."""
    spec: str
    """The commit or the folder whose specs judged it again."""
    itself: bool
    """Whether these are the specs that judged it first."""
    identical: bool
    """Whether no outcome differs."""
    differing: int
    """How many outcomes differ, if only in a reason or a measurement."""
    verdicts: int
    """How many outcomes differ in the verdict."""
    alone: int
    """How many outcomes only one of the two has."""
    programs: list[str]
    """The programs that judged in another version."""


@fact
class RejudgeAnswer(RejudgeHead):
    """A run that was judged again, and how that differs."""

    comparison: ComparisonAnswer
    """What differs, as `assay results --compare` tells it."""


Spec = Annotated[
    str, option("--spec REV", "Use the specs of this commit; . is the working tree. Default: the commit of the run.")
]


def rejudge(
    run: RunName, spec: Spec = "", jobs: Jobs = 1, fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Judge a run again, with its own specs or with others, and show the differences. Nothing is recorded.

    Exit codes: 0 identical, or with other specs the same verdicts; 1 different; 2 it cannot be judged again.
    """
    from assay.ledger.runs.reader import find_run
    from assay.validate.results.comparison_summary import collect_differences
    from assay.validate.results.run_comparison import RunComparison
    from assay.validate.runs.rejudge import rejudge_run

    workspace = Workspace(fleet.resolve())
    ledger = str(workspace.ledger_location) if workspace.has_ledger else ""
    file = find_run(workspace.reports_dir, run)
    with ExitStack() as stack:
        with show_progress("judged") as show:
            judging = rejudge_run(
                workspace.root,
                file,
                workspace.evidence_dir,
                spec,
                ledger=ledger,
                is_lab=workspace.home.is_lab,
                jobs=jobs,
                progress=show,
            )
            rejudged = stack.enter_context(judging)
        comparison = stack.enter_context(RunComparison(rejudged.old, rejudged.new))
        differences = collect_differences(comparison)
        format_answer = format_rejudge_json if form == "json" else format_rejudge_text
        for line in format_answer(rejudged, differences):
            typer.echo(line)
        same = rejudged.equality.identical if rejudged.is_original_spec else rejudged.equality.agrees
    raise typer.Exit(0 if same else 1)


def format_rejudge_text(rejudged: RejudgedRun, differences: RunDifferences) -> Iterator[str]:
    """Yield the differences; one line if there are none."""
    from assay.validate.results.comparison_summary import format_comparison_headline, make_comparison_sections
    from assay.validate.results.outcome_lines import shorten_check

    yield f"run {differences.old.id}, judged again by {rejudged.rev}: {describe_sameness(rejudged)}"
    if rejudged.equality.identical:
        return
    if rejudged.programs:
        yield f"  judged by other versions of: {', '.join(rejudged.programs)}"
    if rejudged.equality.agrees:
        yield "no verdict differs; reasons, limits or measurements do, for example of"
        yield from (f"  {subject}  {shorten_check(check)}" for check, subject in rejudged.equality.examples)
        return
    yield format_comparison_headline(differences)
    for section in make_comparison_sections(differences):
        yield from ("", section.title, *(f"  {line}" for line in section.lines))


def describe_sameness(rejudged: RejudgedRun) -> str:
    """Return how many outcomes are identical."""
    equality = rejudged.equality
    if equality.identical:
        return f"{format_count(equality.both, 'outcome')}, all identical"
    alone = f", {equality.alone} are in only one of the two" if equality.alone else ""
    return f"{equality.differing} of {format_count(equality.both, 'outcome')} differ{alone}"


def format_rejudge_json(rejudged: RejudgedRun, differences: RunDifferences) -> Iterator[str]:
    """Yield one JSON document in pieces: the run, whether it is identical, and the comparison as `results` has it."""
    from assay.tell.report.registry import format_json_comparison

    equality = rejudged.equality
    head = RejudgeHead(
        run=differences.old.id,
        spec=rejudged.rev,
        itself=rejudged.is_original_spec,
        identical=equality.identical,
        differing=equality.differing,
        verdicts=equality.verdicts,
        alone=equality.alone,
        programs=list(rejudged.programs),
    )
    yield f"{format_answer(head, ensure_ascii=False)[:-1]}, "
    yield '"comparison":'
    yield from format_json_comparison(differences)
    yield "}"
