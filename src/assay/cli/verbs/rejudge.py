"""`assay rejudge`: judge the stored evidence of a run again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.render.run_progress import show_run_progress
from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.ledger.location import locate_existing_ledger
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.harness.runs.rejudge import RejudgedRun
    from assay.results.comparison.comparison_summary import RunDifferences

rejudge_app = typer.Typer(add_completion=False, help="Judge the stored evidence of a run again.")

RunName = Annotated[str, typer.Argument(metavar="RUN", help="Its id or how that begins; last, last~1 …")]
Spec = Annotated[str, typer.Option("--spec", metavar="REV", help="By the specs of this commit; . is the folder.")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Share the nodes among this many processes.")]


@rejudge_app.command()
def rejudge(
    run: RunName, spec: Spec = "", jobs: Jobs = 1, fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Judge a run again, by its own specs or by others, and say what differs. Nothing is recorded.

    Exit 0: the same in every byte, or by other specs the same verdicts; 1: not; 2: it could not be judged again.
    """
    from assay.harness.runs.rejudge import rejudge_run
    from assay.results.comparison.comparison_summary import collect_differences
    from assay.results.comparison.run_comparison import compare_runs
    from assay.results.store.run_lookup import find_run

    desk = Workspace(fleet.resolve())
    ledger = locate_existing_ledger(desk.data_dir)
    file = find_run(desk.reports_dir, run)
    with ExitStack() as stack:
        with show_run_progress() as progress:
            judging = rejudge_run(desk.root, file, desk.evidence_dir, spec, ledger=ledger, jobs=jobs, progress=progress)
            again = stack.enter_context(judging)
        comparison = stack.enter_context(compare_runs(again.old, again.new))
        found = collect_differences(comparison, [], desk.root)
        for line in format_rejudge_json(again, found) if form == "json" else format_rejudge_text(again, found):
            typer.echo(line)
        well = again.equality.identical if again.is_original_spec else again.equality.agrees
    raise typer.Exit(0 if well else 1)


def format_rejudge_text(again: RejudgedRun, found: RunDifferences) -> Iterator[str]:
    """Yield what came out, in one line where nothing differs."""
    from assay.results.comparison.comparison_summary import format_comparison_headline, make_comparison_sections
    from assay.results.outcome_lines import shorten_check

    yield f"run {found.old.id}, judged again by {again.rev}: {describe_sameness(again)}"
    if again.equality.identical:
        return
    if again.programs:
        yield f"  other programs judge now: {', '.join(again.programs)}"
    if again.equality.agrees:
        yield "no verdict differs; reasons, limits or measurements do, first of all of"
        yield from (f"  {subject}  {shorten_check(check)}" for check, subject in again.equality.examples)
        return
    yield format_comparison_headline(found)
    for section in make_comparison_sections(found):
        yield from ("", section.title, *(f"  {line}" for line in section.lines))


def describe_sameness(again: RejudgedRun) -> str:
    """Return how much is the same."""
    same = again.equality
    if same.identical:
        return f"{format_count(same.both, 'outcome')}, all the same in every byte"
    alone = f", {same.alone} are in one of the two only" if same.alone else ""
    return f"{same.differing} of {format_count(same.both, 'outcome')} differ{alone}"


def format_rejudge_json(again: RejudgedRun, found: RunDifferences) -> Iterator[str]:
    """Yield one document: what was compared, whether it is identical, and the comparison as `results` has it."""
    from assay.results.formats.json_format import format_json_comparison

    same = again.equality
    about = {
        "run": found.old.id,
        "spec": again.rev,
        "itself": again.is_original_spec,
        "identical": same.identical,
        "differing": same.differing,
        "verdicts": same.verdicts,
        "alone": same.alone,
        "programs": list(again.programs),
    }
    yield f"{json.dumps(about, ensure_ascii=False)[:-1]}, "
    yield '"comparison":'
    yield from format_json_comparison(found)
    yield "}"
