"""`assay plan --base REV`: what merging would do to the fleet, before anybody merges."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.workspace import FleetDir, Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.fleet.yaml_document import ParseCache
    from assay.model.backtest import BacktestReport
    from assay.model.ledger_entry import LedgerEntry
    from assay.plan.change_plan import ChangePlan
    from assay.plan.current_fleet_state import FleetFacts
    from assay.plan.fleet_revision import FleetRevision
    from assay.plan.known_issue_changes import CountingChange
    from assay.trends.revision_comparison import PolicyRevision

plan_app = typer.Typer(add_completion=False, help="Show what merging would do to the fleet.")


@plan_app.command()
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
    from assay.fleet.yaml_document import ParseCache
    from assay.plan.change_plan import make_change_plan as compare

    if not fleet.is_dir():
        raise AssayError(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    gc.disable()  # what is read lives until the end; looking for garbage in it takes a quarter of the time
    desk, shelf = Workspace(fleet.resolve()), ParseCache()
    before = _declared(desk, base, shelf)
    after = _declared(desk, head, shelf)
    made = compare(before, after, load_plan_facts(desk, before, after))
    typer.echo(format_fleet_plan(made, format_))
    sys.exit(1 if made.refused else 0)


def format_fleet_plan(made: ChangePlan, form: str) -> str:
    """Return a plan in one of its forms."""
    from assay.plan.output_formats import format_plan_json, format_plan_markdown, format_plan_text

    shapes: dict[str, Callable[[ChangePlan], str]] = {
        "text": format_plan_text,
        "json": format_plan_json,
        "markdown": format_plan_markdown,
    }
    return shapes[form](made)


def _declared(desk: Workspace, rev: str, shelf: ParseCache) -> FleetRevision:
    """Return a revision, "" for the folder as it is. Raises Trouble with its first mistake."""
    from assay.fleet.check_inputs import read_check_inputs
    from assay.fleet.fleet_loader import build_fleet, read_draft
    from assay.plan.fleet_revision import FleetRevision

    name = rev or "the working tree"
    draft = read_draft(desk.root, rev=rev or None, shelf=shelf)
    try:
        return FleetRevision(build_fleet(draft), read_check_inputs(draft.tree, shelf), name)
    except AssayError as trouble:
        fix = f"`assay check` on {name} lists every mistake; a plan needs two revisions that can be read"
        raise AssayError(f"{name} cannot be read: {trouble.what}", where=trouble.where, fix=fix) from trouble


def load_plan_facts(desk: Workspace, before: FleetRevision, after: FleetRevision) -> FleetFacts:
    """Return what the ledger knows, nothing where there is none; none is made."""
    from assay.plan.current_fleet_state import FleetFacts
    from assay.trends import durations
    from assay.trends.backtest import read_ledger_entries

    told = read_ledger_entries(desk.ledger_location)
    if not told:
        return FleetFacts(recounts=_recounts(desk, before, after))
    from assay.lifecycle.node_state_projection import project_node_states

    took = durations.median_action_durations(told), durations.median_state_durations(told)
    return FleetFacts(
        project_node_states(told), *took, _backtest(desk, before, after, told), _recounts(desk, before, after)
    )


def _recounts(desk: Workspace, before: FleetRevision, after: FleetRevision) -> tuple[CountingChange, ...]:
    """Return what the changed stages and known issues mean for the last outcomes of their checks."""
    from assay.plan.known_issue_changes import find_affected_checks, find_counting_changes, select_newest_outcomes
    from assay.trends.backtest import read_recent_outcomes

    now = desk.clock.now()
    last = select_newest_outcomes(read_recent_outcomes(desk.ledger_location, find_affected_checks(before, after), now))
    return find_counting_changes(before, after, last, now)


def _backtest(
    desk: Workspace, before: FleetRevision, after: FleetRevision, told: list[LedgerEntry]
) -> BacktestReport | None:
    """Return the backtest; None where neither limits nor policy change, since then it has nothing to say."""
    from assay.trends.backtest import find_changed_scopes, read_recent_outcomes, run_backtest

    sides = _policy_side(before), _policy_side(after)
    limits, rules = find_changed_scopes(*sides)
    if not limits and not rules:
        return None
    bounds = {
        (check, measurement): sides_of
        for check, reads in {**before.reads, **after.reads}.items()
        for measurement, sides_of in reads.limits_by_measurement().items()
    }
    now = desk.clock.now()
    recent = read_recent_outcomes(desk.ledger_location, {check for check, _ in bounds} if limits else (), now)
    return run_backtest(*sides, bounds, told, recent, now)


def _policy_side(declared: FleetRevision) -> PolicyRevision:
    from assay.trends.revision_comparison import PolicyRevision

    return PolicyRevision(declared.fleet, declared.policy, declared.catalog)
