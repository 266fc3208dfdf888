"""`assay prune`: deletes runs that are older than the policy wants, and says what is lost with them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.operator_orders import Who, find_operator_name
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.ledger.location import locate_existing_ledger
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.model.specs.intake_limits import RetentionRules
    from assay.results.run_retention import PrunePlan

prune_app = typer.Typer(add_completion=False)

MAX_NAMED = 20


@prune_app.command()
def prune(
    yes: Annotated[bool, typer.Option("--yes", help="Delete. Without it, only show what would be deleted.")] = False,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Delete runs that are older than `retention` of the policy, with artefacts that only they have, and old outcomes.

    History keeps the outcomes of deleted runs. Runs that have not ended, that cannot be read or that history lacks are
    kept, and named. In the ledger, the newest outcomes stay, and an entry notes what was deleted.

    Exit codes: 0 done, or shown; 2 something could not be read or deleted.
    """
    from assay.results.run_retention import plan_pruning

    workspace = Workspace(fleet.resolve())
    rules = workspace.fleet.policy.retention
    plan = plan_pruning(workspace.reports_dir, rules, workspace.clock.now())
    outcomes = _prune_ledger(workspace, rules, who) if yes else _count_in_ledger(workspace, rules)
    if yes:
        plan.execute()
    if form == "json":
        typer.echo(_format_json(plan, outcomes, deleted=yes))
        return
    for line in _format_text(plan, rules, outcomes, deleted=yes):
        typer.echo(line)


def _count_in_ledger(workspace: Workspace, rules: RetentionRules) -> int:
    if rules.outcomes_days is None or not locate_existing_ledger(workspace.data_dir):
        return 0
    return workspace.ledger.count_prunable(workspace.clock.now() - timedelta(days=rules.outcomes_days))


def _prune_ledger(workspace: Workspace, rules: RetentionRules, who: str) -> int:
    """Delete the ledger's old outcomes, and return how many."""
    if not _count_in_ledger(workspace, rules):
        return 0
    now = workspace.clock.now()
    return workspace.ledger.prune_outcomes(
        now - timedelta(days=rules.outcomes_days or 0.0), find_operator_name(who), now
    )


def _format_json(plan: PrunePlan, outcomes: int, *, deleted: bool) -> str:
    plain = {
        "deleted": deleted,
        "runs": [run.parent.name for run in plan.runs],
        "artefacts": len(plan.artefacts),
        "outcomes": outcomes,
        "bytes": plan.size,
        "rejudgeable": plan.rejudgeable,
        "kept": [{"run": kept.run, "why": kept.why} for kept in plan.kept],
    }
    return json.dumps(plain, ensure_ascii=False)


def _format_text(plan: PrunePlan, rules: RetentionRules, outcomes: int, *, deleted: bool) -> Iterator[str]:
    if rules.runs_days is None:
        yield "the policy keeps every run: it has no retention.runs_days"
    for kept in plan.kept:
        yield f"kept {kept.run}: {kept.why}"
    for run in plan.runs[:MAX_NAMED]:
        yield f"{'deleted' if deleted else 'would delete'} {run.parent.name}"
    if len(plan.runs) > MAX_NAMED:
        yield f"… and {len(plan.runs) - MAX_NAMED} more"
    told = f" and {format_count(outcomes, 'outcome')} in the ledger" if rules.outcomes_days is not None else ""
    what = f"{format_count(len(plan.runs), 'run')} and {format_count(len(plan.artefacts), 'artefact')}{told}"
    yield f"{what}, {plan.size / 1e6:.1f} MB{'' if deleted else '; nothing is deleted without --yes'}"
    if plan.rejudgeable:
        runs = format_count(plan.rejudgeable, "run")
        verb = "can" if deleted else "could"
        yield f"`assay rejudge` {verb} judge {runs} of them no more; their outcomes stay in history"
    if outcomes:
        yield "a check that counts growth since its last pass counts from zero when a run of that time is judged again"
