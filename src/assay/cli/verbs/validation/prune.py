"""`assay prune`: deletes runs that are older than the policy wants, and says what is lost with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.results.run_retention import PrunePlan

prune_app = typer.Typer(add_completion=False)

MAX_NAMED = 20


@prune_app.command()
def prune(
    yes: Annotated[bool, typer.Option("--yes", help="Delete. Without it, only show what would be deleted.")] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Delete the files of runs that are older than `retention` of the policy, and artefacts that only they have.

    History keeps their outcomes, and so does the ledger. Runs that have not ended, that cannot be read or that history
    lacks are kept, and named.

    Exit codes: 0 done, or shown; 2 something could not be read or deleted.
    """
    from assay.results.run_retention import plan_pruning

    workspace = Workspace(fleet.resolve())
    rules = workspace.fleet.policy.retention
    plan = plan_pruning(workspace.reports_dir, rules, workspace.clock.now())
    if yes:
        plan.execute()
    if form == "json":
        typer.echo(_format_json(plan, deleted=yes))
        return
    if rules.runs_days is None:
        typer.echo("the policy keeps every run: it has no retention.runs_days")
        return
    for line in _format_text(plan, deleted=yes):
        typer.echo(line)


def _format_json(plan: PrunePlan, *, deleted: bool) -> str:
    plain = {
        "deleted": deleted,
        "runs": [run.parent.name for run in plan.runs],
        "artefacts": len(plan.artefacts),
        "bytes": plan.size,
        "rejudgeable": plan.rejudgeable,
        "kept": [{"run": kept.run, "why": kept.why} for kept in plan.kept],
    }
    return json.dumps(plain, ensure_ascii=False)


def _format_text(plan: PrunePlan, *, deleted: bool) -> Iterator[str]:
    for kept in plan.kept:
        yield f"kept {kept.run}: {kept.why}"
    for run in plan.runs[:MAX_NAMED]:
        yield f"{'deleted' if deleted else 'would delete'} {run.parent.name}"
    if len(plan.runs) > MAX_NAMED:
        yield f"… and {len(plan.runs) - MAX_NAMED} more"
    what = f"{format_count(len(plan.runs), 'run')} and {format_count(len(plan.artefacts), 'artefact')}"
    yield f"{what}, {plan.size / 1e6:.1f} MB{'' if deleted else '; nothing is deleted without --yes'}"
    if plan.rejudgeable:
        runs = format_count(plan.rejudgeable, "run")
        verb = "can" if deleted else "could"
        yield f"`assay rejudge` {verb} judge {runs} of them no more; their outcomes stay in history"
