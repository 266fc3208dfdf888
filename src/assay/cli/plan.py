"""`assay plan --base REV`: what merging would do to the fleet, before anybody merges."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.desk import Desk, FleetDir
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.fleet.document import Shelf
    from assay.model.backtest import Backtest
    from assay.model.entry import Entry
    from assay.plan.declared import Declared
    from assay.plan.excuses import Recount
    from assay.plan.facts import Facts
    from assay.plan.plan import Plan
    from assay.trends.reaction import Side

app = typer.Typer(add_completion=False, help="Show what merging would do to the fleet.")


@app.command()
def plan(
    base: Annotated[str, typer.Option(help="The revision that is merged into: a branch, a tag or a commit.")],
    head: Annotated[str, typer.Option(help="The revision to merge; without it the folder as it is.")] = "",
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["text", "json", "markdown"],
        typer.Option("--format", help="text for people, json for machines, markdown for a pull request."),
    ] = "text",
) -> None:
    """Compare two revisions of the fleet repository. Exit codes: 0 inside the limits, 1 refused, 2 could not tell."""
    from assay.fleet.document import Shelf
    from assay.plan.plan import plan as compare

    if not fleet.is_dir():
        raise Trouble(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    gc.disable()  # what is read lives until the end; looking for garbage in it takes a quarter of the time
    desk, shelf = Desk(fleet.resolve()), Shelf()
    before = _declared(desk, base, shelf)
    after = _declared(desk, head, shelf)
    made = compare(before, after, facts_of(desk, before, after))
    typer.echo(shown(made, format_))
    sys.exit(1 if made.refused else 0)


def shown(made: Plan, form: str) -> str:
    """Return a plan in one of its forms."""
    from assay.plan.as_json import as_json
    from assay.plan.as_markdown import as_markdown
    from assay.plan.as_text import as_text

    shapes: dict[str, Callable[[Plan], str]] = {"text": as_text, "json": as_json, "markdown": as_markdown}
    return shapes[form](made)


def _declared(desk: Desk, rev: str, shelf: Shelf) -> Declared:
    """Return a revision, "" for the folder as it is. Raises Trouble with its first mistake."""
    from assay.fleet.load import draft_of, fleet_of
    from assay.fleet.reads import read_checks
    from assay.plan.declared import Declared

    name = rev or "the working tree"
    draft = draft_of(desk.root, rev=rev or None, shelf=shelf)
    try:
        return Declared(fleet_of(draft), read_checks(draft.tree, shelf), name)
    except Trouble as trouble:
        fix = f"`assay check` on {name} lists every mistake; a plan needs two revisions that can be read"
        raise Trouble(f"{name} cannot be read: {trouble.what}", where=trouble.where, fix=fix) from trouble


def facts_of(desk: Desk, before: Declared, after: Declared) -> Facts:
    """Return what the ledger knows, nothing where there is none; none is made."""
    from assay.plan.facts import Facts
    from assay.trends import durations
    from assay.trends.history import entries

    told = entries(desk.ledger_at)
    if not told:
        return Facts(recounts=_recounts(desk, before, after))
    from assay.lifecycle.fold import fold

    took = durations.actions(told), durations.stays(told)
    return Facts(fold(told), *took, _backtest(desk, before, after, told), _recounts(desk, before, after))


def _recounts(desk: Desk, before: Declared, after: Declared) -> tuple[Recount, ...]:
    """Return what the changed stages and known issues mean for the last outcomes of their checks."""
    from assay.plan.excuses import newest, recounts, touched
    from assay.trends.history import outcomes

    now = desk.clock.now()
    last = newest(outcomes(desk.ledger_at, touched(before, after), now))
    return recounts(before, after, last, now)


def _backtest(desk: Desk, before: Declared, after: Declared, told: list[Entry]) -> Backtest | None:
    """Return the backtest; None where neither limits nor policy change, since then it has nothing to say."""
    from assay.trends.backtest import backtest, changes_anything
    from assay.trends.history import outcomes

    sides = _side(before), _side(after)
    limits, rules = changes_anything(*sides)
    if not limits and not rules:
        return None
    bounds = {
        (check, measurement): sides_of
        for check, reads in {**before.reads, **after.reads}.items()
        for measurement, sides_of in reads.held().items()
    }
    now = desk.clock.now()
    recent = outcomes(desk.ledger_at, {check for check, _ in bounds} if limits else (), now)
    return backtest(*sides, bounds, told, recent, now)


def _side(declared: Declared) -> Side:
    from assay.trends.reaction import Side

    return Side(declared.fleet, declared.policy, declared.catalog)
