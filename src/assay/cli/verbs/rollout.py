"""`assay rollout`: how far merged changes are on their way to the nodes; pauses, resumes and aborts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.act.orders.orders import OperatorIdentity, find_active_rollout, find_rollout, pause_rollout, resume_rollout
from assay.cli.context_line import print_answer
from assay.cli.operator_orders import Reason, Who, identify_operator
from assay.cli.options import FleetDir, OutputFormat, argument, hand_fleet_on
from assay.cli.workspace import Workspace
from assay.decide.rollouts.decide_rollouts import withdraw_orders
from assay.decide.rollouts.node_progress import PROGRESS_KINDS
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout, shorten_id
from assay.decide.state.node_projection import project_node_states
from assay.ledger.location import read_all_entries
from assay.model.entries.rollouts import CommitAdoptedEntry, RolloutAbortedEntry
from assay.model.facts import fact
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.text.lists import format_count, format_nodes
from assay.model.text.safe_text import escape_line
from assay.model.timestamps import format_ago
from assay.tell.views.node_sync import RolloutSummary, summarize_rollout

if TYPE_CHECKING:
    from assay.act.rollouts.rollout_advance import RolloutReport


BAR_WIDTH = 30
NODES_SHOWN = 12
"""So many nodes of each kind of progress have a line of their own."""


@fact
class UncomparedCommit:
    """A commit that was adopted without a rollout, because it could not be compared with the one before."""

    commit: str
    """The adopted commit."""
    base: str
    """The commit that was adopted before it."""
    at: str
    """When it was adopted: ISO 8601 with the offset of UTC."""
    reason: str
    """Why the two cannot be compared."""


@fact
class RolloutsAnswer:
    """The rollouts of merged changes, and the commits that got none."""

    rollouts: list[RolloutSummary]
    """All rollouts, the newest first."""
    uncompared: list[UncomparedCommit]
    """The commits that were adopted without a rollout because they could not be compared, the newest first."""


@fact
class RolloutOrderAnswer:
    """What was recorded of an order about a rollout."""

    rollout: str
    """The id of the rollout."""
    new: bool
    """Whether this was recorded now; false if the same order was recorded before."""
    who: str
    """Who gave the order."""
    reason: str
    """Why, in that person's words."""


def make_uncompared_commit(adopted: LedgerEntry) -> UncomparedCommit:
    """Return a commit that was adopted without a rollout, because it could not be compared with the one before."""
    body = CommitAdoptedEntry.read(adopted)
    return UncomparedCommit(commit=body.commit, base=body.base, at=adopted.at, reason=body.uncompared)


def format_uncompared(adopted: LedgerEntry, now: datetime) -> str:
    """Return such a commit in two lines: what happened, and what to do."""
    body = CommitAdoptedEntry.read(adopted)
    when = f"adopted {format_ago(adopted.at, now)}"
    reason = f"cannot be compared with {body.base[:8]}: {body.uncompared}"
    fix = "`assay sync` shows what differs, and the remedies"
    return f"{body.commit[:8]}  {when}, without a rollout: {reason}\n  → {fix}"


def format_rollout(rollout: Rollout, now: datetime) -> str:
    """Return a rollout in one line."""
    proven = len(rollout.members) - len(rollout.unproven)
    ended, pause = rollout.ended_at, rollout.pause
    when = f"ended {format_ago(ended, now)}" if ended else f"since {format_ago(rollout.started_at, now)}"
    reason = escape_line(f"paused by {pause.who}: {pause.reason}" if pause else rollout.end_reason)
    head = f"{shorten_id(rollout.id)}  {rollout.base[:8]} → {rollout.commit[:8]}  {rollout.status}, {when}"
    return f"{head}  {proven} of {format_count(len(rollout.members), 'node')} proven{f'  {reason}' if reason else ''}"


def format_report(report: RolloutReport, now: datetime) -> Iterator[str]:
    """Yield a report as lines for people."""
    rollout, step = report.rollout, report.step
    yield format_rollout(rollout, now)
    total, proven = len(rollout.members), len(rollout.members) - len(rollout.unproven)
    filled = BAR_WIDTH * proven // max(1, total)
    bar = f"{'█' * filled}{'░' * (BAR_WIDTH - filled)}"
    if step is None:
        yield f"  {bar}  {proven} of {total} proven"
        return
    counts = Counter(member.kind for member in step.progress)
    yield f"  {bar}  {', '.join(f'{counts[kind]} {kind}' for kind in PROGRESS_KINDS if counts[kind])}"
    if step.waits_for:
        yield f"  waits: {step.waits_for}"
    if rollout.plan:
        yield f"  reviewed plan: {rollout.plan}"
    yield f"  {format_count(len(report.waves), 'wave')} to go, about {report.hours_left or 0:.0f} h"
    for wave in report.waves[:NODES_SHOWN]:
        yield f"  wave {wave.number + 1}{' (canary)' if wave.canary else ''}: {format_nodes(list(wave.nodes))}"
    for kind in PROGRESS_KINDS:
        yield from _format_nodes_of_kind(report, kind)


def _format_nodes_of_kind(report: RolloutReport, kind: str) -> Iterator[str]:
    """Yield a line for each node of which there is something to say; those that wait or are proven are only counted."""
    step = report.step
    if step is None or kind in ("waiting", "proven"):
        return
    nodes = [member for member in step.progress if member.kind == kind]
    yield from (f"  {member.node}  {kind}  {member.why}" for member in nodes[:NODES_SHOWN])
    if len(nodes) > NODES_SHOWN:
        yield f"  and {len(nodes) - NODES_SHOWN} more {kind}"


rollout_app = typer.Typer(add_completion=False)

RolloutId = Annotated[str, argument("ID", "The rollout: the first characters of its id are enough.")]


@rollout_app.callback(invoke_without_command=True)
def rollout(context: typer.Context, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """List the rollouts: merged changes for which nodes must leave service, the newest first.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    hand_fleet_on(context, fleet)
    if context.invoked_subcommand is None:
        _print_list(fleet, form)


@rollout_app.command("list")
def list_all(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """List the rollouts, the newest first. `assay rollout` does the same.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    _print_list(fleet, form)


@rollout_app.command()
def show(ident: RolloutId, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show how far a rollout is: each node, the waves to come, what it waits for, and an estimate.

    Exit codes: 0 shown; 2 there is no such rollout, or the ledger or the fleet cannot be read.
    """
    from assay.act.rollouts.rollout_advance import report_rollout
    from assay.tell.views.rollout_view import make_rollout_answer

    workspace = Workspace(fleet.resolve())
    entries = read_all_entries(workspace.ledger_location)
    rollout, states = find_rollout(ROLLOUTS.fold(entries).rollouts.values(), ident), project_node_states(entries)
    now = workspace.clock.now()
    report = report_rollout(workspace.fleet, workspace.ledger_for_reading, states.values(), rollout, now)
    print_answer(make_rollout_answer(report), form, format_report(report, now))
    workspace.print_page(form, "rollouts", rollout.id)


@rollout_app.command()
def pause(
    ident: RolloutId, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Pause a rollout: no more nodes leave service for it. Nodes that are out finish their way.

    Exit codes: 0 paused; 2 nothing was recorded.
    """
    workspace, rollout, operator = _prepare_order(fleet, ident, who, reason)
    entry = pause_rollout(rollout, operator)
    _record(workspace, rollout, form, "is paused: nodes that are out finish their way", entry)


@rollout_app.command()
def resume(
    ident: RolloutId, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Resume a paused rollout. You accept the reason of the pause: failures, a hold, a breaker, or another plan.

    Exit codes: 0 resumed; 2 nothing was recorded.
    """
    workspace, rollout, operator = _prepare_order(fleet, ident, who, reason)
    _record(workspace, rollout, form, "goes on in the next round", resume_rollout(rollout, operator))


@rollout_app.command()
def abort(
    ident: RolloutId, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """End a rollout for good. Nodes that are out finish their way; the others keep what they have.

    To bring the nodes back to what they had, merge a `git revert`: that is a rollout too.

    Exit codes: 0 aborted; 2 nothing was recorded.
    """
    workspace, rollout, operator = _prepare_order(fleet, ident, who, reason)
    entry = RolloutAbortedEntry(rollout.id, operator.who, operator.reason)
    aborted = entry.make_entry(derive_id(entry.kind, rollout.id), operator.at)
    states = project_node_states(read_all_entries(workspace.ledger_location))
    reason, policy = f"rollout {shorten_id(rollout.id)} is aborted", workspace.fleet.policy
    orders = withdraw_orders(policy, states.values(), rollout.id, reason, operator.at, operator.who)
    _record(workspace, rollout, form, "is aborted", aborted, *orders)


def _print_list(fleet: Path, form: str) -> None:
    workspace = Workspace(fleet.resolve())
    history = ROLLOUTS.fold(read_all_entries(workspace.ledger_location))
    rollouts, uncompared = [*history.rollouts.values()][::-1], history.uncompared[::-1]
    answer = RolloutsAnswer([summarize_rollout(each) for each in rollouts], [*map(make_uncompared_commit, uncompared)])
    now = workspace.clock.now()
    lines = [format_rollout(rollout, now) for rollout in rollouts]
    lines += [format_uncompared(adopted, now) for adopted in uncompared]
    print_answer(answer, form, lines or ["no merged change took nodes out of service"])
    workspace.print_page(form, "rollouts")


def _prepare_order(fleet: Path, ident: str, who: str, reason: str) -> tuple[Workspace, Rollout, OperatorIdentity]:
    """Return what an order needs. Raises AssayError for a rollout that has ended."""
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    rollouts = ROLLOUTS.fold(read_all_entries(workspace.ledger_location)).rollouts
    return workspace, find_active_rollout(rollouts.values(), ident), operator


def _record(workspace: Workspace, rollout: Rollout, form: str, text: str, *entries: LedgerEntry) -> None:
    new = workspace.ledger.append(*entries)
    body = entries[0].body
    answer = RolloutOrderAnswer(rollout.id, new[0], body["who"], body["reason"])
    print_answer(answer, form, [f"rollout {shorten_id(rollout.id)} {text}"])
