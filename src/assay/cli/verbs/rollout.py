"""`assay rollout`: how far merged changes are on their way to the nodes; pauses, resumes and aborts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.act.orders.operator_order import OperatorIdentity
from assay.act.orders.rollout_orders import find_active_rollout, find_rollout, pause_rollout, resume_rollout
from assay.cli.context_line import format_answer
from assay.cli.operator_orders import Reason, Who, identify_operator
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.verbs.rollout_progress import (
    format_report,
    format_rollout,
    format_uncompared,
    report_as_json,
    uncompared_as_json,
)
from assay.cli.workspace import Workspace
from assay.decide.rollouts.rollout_history import Rollout, project_rollouts
from assay.decide.rollouts.step_entries import shorten_id
from assay.decide.state.node_state import NodeState
from assay.decide.state.node_state_projection import project_node_states
from assay.ledger.location import read_all_entries
from assay.model.entries.decision_entries import DecisionWithdrawnEntry
from assay.model.entries.rollout_entries import RolloutAbortedEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.tell.views.rollouts import summarize_rollout

if TYPE_CHECKING:
    from assay.cli.answers.rollout_answers import RolloutOrderAnswer, RolloutsAnswer

rollout_app = typer.Typer(add_completion=False)

RolloutId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The rollout: the first characters of its id are enough.", show_default=False),
]


@rollout_app.callback(invoke_without_command=True)
def rollout(context: typer.Context, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """List the rollouts: merged changes for which nodes must leave service, the newest first.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    context.obj = fleet
    if context.invoked_subcommand is None:
        _print_list(fleet, form)


@rollout_app.command("list")
def list_all(context: typer.Context, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """List the rollouts, the newest first. `assay rollout` does the same.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    _print_list(_pick_fleet(context, fleet), form)


@rollout_app.command()
def show(context: typer.Context, ident: RolloutId, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show how far a rollout is: each node, the waves to come, what it waits for, and an estimate.

    Exit codes: 0 shown; 2 there is no such rollout, or the ledger or the fleet cannot be read.
    """
    from assay.act.rollouts.rollout_report import report_rollout

    workspace = Workspace(_pick_fleet(context, fleet).resolve())
    entries = read_all_entries(workspace.ledger_location)
    found, states = find_rollout(project_rollouts(entries).rollouts.values(), ident), project_node_states(entries)
    now = workspace.clock.now()
    report = report_rollout(workspace.fleet, workspace.ledger_for_reading, states.values(), found, now)
    typer.echo(
        format_answer(report_as_json(report), ensure_ascii=False) if form == "json" else format_report(report, now)
    )


@rollout_app.command()
def pause(
    context: typer.Context,
    ident: RolloutId,
    reason: Reason,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Pause a rollout: no more nodes leave service for it. Nodes that are out finish their way.

    Exit codes: 0 paused; 2 nothing was recorded.
    """
    workspace, found, operator = _prepare_order(context, fleet, ident, who, reason)
    _record(workspace, found, form, "is paused: nodes that are out finish their way", pause_rollout(found, operator))


@rollout_app.command()
def resume(
    context: typer.Context,
    ident: RolloutId,
    reason: Reason,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Resume a paused rollout. You accept the reason of the pause: failures, a hold, a breaker, or another plan.

    Exit codes: 0 resumed; 2 nothing was recorded.
    """
    workspace, found, operator = _prepare_order(context, fleet, ident, who, reason)
    _record(workspace, found, form, "goes on in the next round", resume_rollout(found, operator))


@rollout_app.command()
def abort(
    context: typer.Context,
    ident: RolloutId,
    reason: Reason,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """End a rollout for good. Nodes that are out finish their way; the others keep what they have.

    To bring the nodes back to what they had, merge a `git revert`: that is a rollout too.

    Exit codes: 0 aborted; 2 nothing was recorded.
    """
    workspace, found, operator = _prepare_order(context, fleet, ident, who, reason)
    entry = RolloutAbortedEntry(found.id, operator.who, operator.reason)
    aborted = entry.make_entry(derive_id(entry.kind, found.id), operator.at)
    states = project_node_states(read_all_entries(workspace.ledger_location))
    _record(workspace, found, form, "is aborted", aborted, *_withdraw_orders(workspace, found, operator, states))


def _withdraw_orders(
    workspace: Workspace, found: Rollout, operator: OperatorIdentity, states: dict[str, NodeState]
) -> list[LedgerEntry]:
    """Return the withdrawal of each order whose node still serves."""
    serving = workspace.fleet.policy.states_in_service
    why = f"rollout {shorten_id(found.id)} is aborted"
    return [
        DecisionWithdrawnEntry(state.move_request.id, why, who=operator.who).make_entry(
            derive_id("rollout aborted", state.move_request.id), operator.at, state.node
        )
        for state in states.values()
        if state.state in serving and state.move_request and state.move_request.rollout == found.id
    ]


def _pick_fleet(context: typer.Context, fleet: Path) -> Path:
    """Return the folder that was named after the command, else the one before it."""
    before: Path = context.obj
    return before if fleet == Path() else fleet


def _print_list(fleet: Path, form: str) -> None:
    workspace = Workspace(fleet.resolve())
    history = project_rollouts(read_all_entries(workspace.ledger_location))
    rollouts, uncompared = [*history.rollouts.values()][::-1], history.uncompared[::-1]
    if form == "json":
        listed: RolloutsAnswer = {
            "rollouts": [summarize_rollout(one) for one in rollouts],
            "uncompared": [uncompared_as_json(one) for one in uncompared],
        }
        typer.echo(format_answer(listed, ensure_ascii=False))
        return
    now = workspace.clock.now()
    lines = [*(format_rollout(one, now) for one in rollouts), *(format_uncompared(one, now) for one in uncompared)]
    typer.echo("\n".join(lines) or "no merged change took nodes out of service")


def _prepare_order(
    context: typer.Context, fleet: Path, ident: str, who: str, reason: str
) -> tuple[Workspace, Rollout, OperatorIdentity]:
    """Return what an order needs. Raises AssayError for a rollout that has ended."""
    workspace = Workspace(_pick_fleet(context, fleet).resolve())
    operator = identify_operator(workspace, who, reason)
    rollouts = project_rollouts(read_all_entries(workspace.ledger_location)).rollouts
    return workspace, find_active_rollout(rollouts.values(), ident), operator


def _record(workspace: Workspace, found: Rollout, form: str, text: str, *entries: LedgerEntry) -> None:
    new = workspace.ledger.append(*entries)
    if form == "json":
        body = entries[0].body
        answer: RolloutOrderAnswer = {
            "rollout": found.id,
            "new": new[0],
            "who": body["who"],
            "reason": body["reason"],
        }
        typer.echo(format_answer(answer, ensure_ascii=False))
        return
    typer.echo(f"rollout {shorten_id(found.id)} {text}")
