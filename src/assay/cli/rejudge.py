"""`assay rejudge`: judge the stored evidence of a run again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.bars import bars
from assay.cli.desk import Desk, FleetDir, Format
from assay.ledger.where import asked_or_there
from assay.model.spans import counted

if TYPE_CHECKING:
    from assay.harness.rejudge import Rejudged
    from assay.harness.results.differences import Differences

app = typer.Typer(add_completion=False, help="Judge the stored evidence of a run again.")

RunName = Annotated[str, typer.Argument(metavar="RUN", help="Its id or how that begins; last, last~1 …")]
Spec = Annotated[str, typer.Option("--spec", metavar="REV", help="By the specs of this commit; . is the folder.")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Share the nodes among this many processes.")]


@app.command()
def rejudge(run: RunName, spec: Spec = "", jobs: Jobs = 1, fleet: FleetDir = Path(), form: Format = "text") -> None:
    """Judge a run again, by its own specs or by others, and say what differs. Nothing is recorded.

    Exit 0: the same in every byte, or by other specs the same verdicts; 1: not; 2: it could not be judged again.
    """
    from assay.harness.rejudge import rejudged
    from assay.harness.results.compare import compare
    from assay.harness.results.differences import differences
    from assay.harness.store.runs import find

    desk = Desk(fleet.resolve())
    ledger = asked_or_there(desk.home)
    file = find(desk.reports, run)
    with ExitStack() as stack:
        with bars() as progress:
            judging = rejudged(desk.root, file, desk.evidence, spec, ledger=ledger, jobs=jobs, progress=progress)
            again = stack.enter_context(judging)
        comparison = stack.enter_context(compare(again.old, again.new))
        found = differences(comparison, [], desk.root)
        for line in as_json(again, found) if form == "json" else as_text(again, found):
            typer.echo(line)
        well = again.same.identical if again.itself else again.same.agrees
    raise typer.Exit(0 if well else 1)


def as_text(again: Rejudged, found: Differences) -> Iterator[str]:
    """Yield what came out, in one line where nothing differs."""
    from assay.harness.results.lines import short
    from assay.harness.results.sections import headline, sections

    yield f"run {found.old.id}, judged again by {again.rev}: {same_words(again)}"
    if again.same.identical:
        return
    if again.programs:
        yield f"  other programs judge now: {', '.join(again.programs)}"
    if again.same.agrees:
        yield "no verdict differs; reasons, limits or measurements do, first of all of"
        yield from (f"  {subject}  {short(check)}" for check, subject in again.same.examples)
        return
    yield headline(found)
    for section in sections(found):
        yield from ("", section.title, *(f"  {line}" for line in section.lines))


def same_words(again: Rejudged) -> str:
    """Return how much is the same."""
    same = again.same
    if same.identical:
        return f"{counted(same.both, 'outcome')}, all the same in every byte"
    alone = f", {same.alone} are in one of the two only" if same.alone else ""
    return f"{same.differing} of {counted(same.both, 'outcome')} differ{alone}"


def as_json(again: Rejudged, found: Differences) -> Iterator[str]:
    """Yield one document: what was compared, whether it is identical, and the comparison as `results` has it."""
    from assay.harness.results.as_json import differences

    same = again.same
    about = {
        "run": found.old.id,
        "spec": again.rev,
        "itself": again.itself,
        "identical": same.identical,
        "differing": same.differing,
        "verdicts": same.verdicts,
        "alone": same.alone,
        "programs": list(again.programs),
    }
    yield f"{json.dumps(about, ensure_ascii=False)[:-1]}, "
    yield '"comparison":'
    yield from differences(found)
    yield "}"
