"""`assay trends missed` and `assay trends limits`: what history says about the checks themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.left_out_files import tell_left_out
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.trends.shapes.review_answers import TrendsLimitsAnswer

AsOf = Annotated[str, typer.Option(metavar="TIME", help="Ask as of this moment (ISO 8601, UTC). By default: now.")]
Days = Annotated[int, typer.Option(metavar="N", min=1, help="How many days before the moment count.")]


def missed(
    context: typer.Context, fleet: FleetDir = Path(), days: Days = 90, as_of: AsOf = "", form: OutputFormat = "text"
) -> None:
    """Show the failures that took nodes out of service, and what had foreseen them: a check, a limit, or nothing.

    Those that cost most node-hours stand first. Then come the checks worth writing. Exit codes: 0 shown; 2 there is no
    history.
    """
    from assay.cli.render.trends.missed_lines import format_missed
    from assay.results.history.outcome_and_pool_queries import OutcomeHistory
    from assay.results.history.parquet_files import OUTCOMES_TABLE, history_folder, list_day_folders
    from assay.trends.missed.missed_failures import find_missed_failures

    workspace = _open_workspace(context, fleet)
    home = history_folder(workspace.reports_dir)
    if not list_day_folders(home, OUTCOMES_TABLE):
        raise AssayError("there is no history of outcomes yet", where=str(home), fix="run `assay validate`")
    policy = workspace.fleet.policy
    in_service = policy.states_in_service
    moment = parse_moment(as_of, workspace)
    with OutcomeHistory(home, moment, tell_left_out) as history:
        report = find_missed_failures(workspace.ledger_for_reading, history, in_service, days)
    typer.echo(format_answer(report.as_json(), indent=1) if form == "json" else "\n".join(format_missed(report)))


def limits(
    context: typer.Context, fleet: FleetDir = Path(), days: Days = 90, as_of: AsOf = "", form: OutputFormat = "text"
) -> None:
    """Show the limits that never fire, always fire, or fire in vain, and better ones with the diff of a pull request.

    A better limit comes with what it would have shown: the failures foreseen, and the alarms that nothing followed. No
    file is changed. Exit codes: 0 shown; 2 there is no history.
    """
    from assay.cli.render.trends.limit_lines import format_limits
    from assay.controller.tuning.limit_reviews import review_fleet_limits
    from assay.results.history.parquet_files import history_folder

    workspace = _open_workspace(context, fleet)
    home = history_folder(workspace.reports_dir)
    moment = parse_moment(as_of, workspace)
    ledger = workspace.ledger_for_reading
    found = review_fleet_limits(workspace.fleet, ledger, home, moment, days, tell_left_out)
    document: TrendsLimitsAnswer = {"days": days, "limits": [one.as_json() for one in found]}
    typer.echo(format_answer(document, indent=1) if form == "json" else "\n".join(format_limits(found, days)))


def _open_workspace(context: typer.Context, fleet: Path) -> Workspace:
    """Return the workspace of the fleet that the subcommand names, or else the command."""
    return Workspace((context.obj or fleet if fleet == Path() else fleet).resolve())


def parse_moment(text: str, workspace: Workspace | None = None) -> datetime:
    """Return the moment that an option names, by default now by the fleet's clock. Raises AssayError for others."""
    if not text:
        return workspace.clock.now() if workspace else datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise AssayError(f"{text!r} is no time", fix="write it as 2026-11-24T06:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
