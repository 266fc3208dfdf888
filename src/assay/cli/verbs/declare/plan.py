"""`assay plan --base REV`: what merging a change would do to the fleet."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.options import FleetDir
from assay.cli.workspace import Workspace
from assay.ledger.errors import LedgerError
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.fleet.yaml_document import ParseCache
    from assay.plan.change_plan import ChangePlan
    from assay.plan.fleet_revision import FleetRevision

plan_app = typer.Typer(add_completion=False)


@plan_app.command()
def plan(
    base: Annotated[
        str,
        typer.Option(
            metavar="REV", help="The revision to merge into: a branch, a tag or a commit.", show_default=False
        ),
    ],
    head: Annotated[
        str, typer.Option(metavar="REV", help="The revision to merge. Default: the working tree.", show_default=False)
    ] = "",
    fleet: FleetDir = Path(),
    format_: Annotated[
        Literal["text", "json", "markdown"],
        typer.Option(
            "--format", help="text for people, json for machines, markdown for a pull request.", show_default=False
        ),
    ] = "text",
) -> None:
    """Compare two revisions of the fleet repository: the changes, the work they cause, and the policy's limits.

    With a ledger, also list the nodes that the new limits or policy would have moved in the last 30 days. If the ledger
    cannot be read, the plan is made without it and says so.

    Exit codes: 0 the limits allow it; 1 they do not; 2 a revision or the ledger cannot be read.
    """
    from assay.controller.plan_facts import load_plan_facts
    from assay.fleet.yaml_document import ParseCache
    from assay.plan.change_plan import make_change_plan
    from assay.plan.current_fleet_state import FleetFacts

    if not fleet.is_dir():
        raise AssayError(f"there is no folder {fleet}", fix="`--fleet DIR` names the fleet repository")
    gc.disable()  # everything read stays alive until the end; collecting garbage takes a quarter of the time
    workspace, cache = Workspace(fleet.resolve()), ParseCache()
    before = _load_revision(workspace, base, cache)
    after = _load_revision(workspace, head, cache)
    unread = None
    try:
        facts = load_plan_facts(workspace.ledger_location, before, after, workspace.clock.now())
    except LedgerError as error:
        facts, unread = FleetFacts(), error
    change_plan = make_change_plan(before, after, facts)
    typer.echo(format_fleet_plan(change_plan, format_))
    if unread:
        fix = "states of nodes, running work and the last 30 days are missing in this plan; do not merge by it"
        raise AssayError(f"{unread}", fix=fix) from unread
    sys.exit(1 if change_plan.refused else 0)


def format_fleet_plan(change_plan: ChangePlan, form: str) -> str:
    """Return a plan as text, json or markdown."""
    from assay.plan.output_formats import format_plan_json, format_plan_markdown, format_plan_text

    formats: dict[str, Callable[[ChangePlan], str]] = {
        "text": format_plan_text,
        "json": format_plan_json,
        "markdown": format_plan_markdown,
    }
    return formats[form](change_plan)


def _load_revision(workspace: Workspace, rev: str, cache: ParseCache) -> FleetRevision:
    """Return a revision, "" for the working tree. Raises AssayError with its first mistake."""
    from assay.fleet.fleet_loader import build_fleet, read_draft
    from assay.fleet.spec_values_read_by_checks import read_check_inputs
    from assay.plan.fleet_revision import FleetRevision

    name = rev or "the working tree"
    draft = read_draft(workspace.root, rev=rev or None, cache=cache)
    try:
        return FleetRevision(build_fleet(draft), read_check_inputs(draft.tree, cache), name)
    except AssayError as error:
        fix = f"`assay check` on {name} lists every mistake; a plan needs two revisions without mistakes"
        raise AssayError(f"{name} cannot be read: {error.what}", where=error.where, fix=fix) from error
