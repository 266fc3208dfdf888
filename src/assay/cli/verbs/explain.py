"""`assay explain NODE`: why a node is in its state, as a chain of evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from assay.cli.context_line import format_answer
from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, TokenFile
from assay.cli.options import FleetDir, OutputFormat, argument, complete_nodes, option
from assay.cli.workspace import Workspace, pick_node_state
from assay.decide.state.service_absences import list_fleet_absences
from assay.model.errors import AssayError
from assay.model.facts import from_json
from assay.model.timestamps import format_ago, format_minute, format_second
from assay.tell.customer.customer_explanation import (
    CustomerExplanation,
    explain_to_customer,
    format_customer_explanation,
    read_customer_situation,
)
from assay.tell.views.burn_in_status import format_burn_in
from assay.tell.views.node_explanation import ExplainAnswer, ExplainedDecision, explain_node, format_notes
from assay.tell.views.node_status import describe_reading
from assay.tell.views.node_sync import format_node_sync
from assay.tell.views.trust_view import format_node_trust

if TYPE_CHECKING:
    from rich.table import Table


INCIDENTS_SHOWN, SEEN_SHOWN, DONE_SHOWN, NOTES_SHOWN = 3, 4, 6, 8


def list_explanation_lines(
    answer: ExplainAnswer, notes: Iterable[str], now: datetime, *, is_full: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield what a person asks first, each with its label: what broke, since when, why, what was done, who acts."""
    because = "" if answer.incidents or answer.unread_since is not None else f": {answer.because}"
    reading = describe_reading(answer.read_at, answer.unread_since, now)
    since = f"since {format_minute(answer.since)} ({format_ago(answer.since, now)})"
    yield answer.node, f"{answer.state} {since}; {reading}{because}"
    for number, incident in enumerate(answer.incidents[:INCIDENTS_SHOWN]):
        since = f"since {format_minute(incident.since)} ({format_ago(incident.since, now)}){incident.again}"
        yield "what", f"{incident.happened} ({incident.fault_class}, {incident.severity}), {since}"
        yield from _label("why", incident.seen, SEEN_SHOWN)
        if not number:
            steps = [f"{format_minute(step.at)} {step.text}" for step in incident.done]
            yield from _label("done", steps[-DONE_SHOWN:], DONE_SHOWN)
    if (more := len(answer.incidents) - INCIDENTS_SHOWN) > 0:
        yield "", f"and {more} more incidents: --format json"
    yield from _list_next_lines(answer)
    if is_full and answer.cost:
        yield "cost", answer.cost
    lines = [*answer.returned, *notes]
    yield from _label("now", lines, len(lines) if is_full else NOTES_SHOWN)
    for decision in answer.chain if is_full else ():
        yield from _label("decided", [*_list_decision_lines(decision)])


def _list_next_lines(answer: ExplainAnswer) -> Iterator[tuple[str, str]]:
    """Yield what people ordered, who acts next, and when the node is back."""
    if hold := answer.held:
        until = f" until {format_minute(hold.until)}" if hold.until else ""
        yield "hold", f"held by {hold.who} since {format_minute(hold.at)}{until}: {hold.reason}"
    if request := answer.asked:
        yield "asked", f"{request.who} asked for {request.to} at {format_minute(request.at)}: {request.reason}"
    if unknown := answer.jobs_unknown:
        yield "jobs", f"not known since {format_minute(unknown.since)}: {unknown.reason}"
    if answer.pending and answer.pending.because and not answer.incidents:
        yield "waits", answer.pending.because[0].text
    if answer.next.who and not answer.held:
        yield "next", answer.next.line
    if answer.back:
        yield "back", answer.back


def _list_decision_lines(decision: ExplainedDecision) -> Iterator[str]:
    """Yield what was decided and when, then its causes with their evidence, its rule and its effects."""
    yield f"{format_second(decision.at)}  {decision.text}"
    for cause in decision.because:
        yield f"  because of {cause.kind}: {cause.text}"
        if cause.evidence:
            run = cause.id.partition("/")[0]
            yield f"    evidence {cause.evidence[:12]} of {format_second(cause.evidence_at)}, run {run}"
    yield f"  by the rule {decision.rule}"
    for effect in decision.effects:
        reason = f": {effect.reason}" if effect.reason else ""
        yield f"  effect {effect.action} {effect.standing} {format_second(effect.at)}{reason}"


def _label(label: str, lines: Sequence[str], most: int | None = None) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines[:most]):
        yield "" if number else label, line
    if more := len(lines) - len(lines[:most]):
        yield "", f"and {more} more: --full"


PIPE_WIDTH = 200
"""Columns of the tree when stdout is not a terminal."""


def explain(
    node: Annotated[str, argument("NODE", "The node.", complete=complete_nodes)],
    is_full: Annotated[bool, option("--full", "Add the decisions with all their causes.")] = False,
    last: Annotated[int, option("--last N", "With --full or JSON: the last N decisions; 0 for all.", min=0)] = 8,
    reader: Annotated[
        Literal["engineer", "customer"],
        option(
            "--for",
            "engineer (default): the chain of evidence. customer: plain words, without codes, ids and names.",
            show_default=False,
        ),
    ] = "engineer",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
    server: Server = "",
    token_file: TokenFile = None,
    ca: ServerAuthority = None,
) -> None:
    """Show what is wrong with a node: what broke, since when, why assay thinks so, what was done, and who acts next.

    Then show what its state still requires, failures that decide nothing (known issues, observed checks), what differs
    from the fleet repository (`assay sync`), its burn-in, and how far the active rollout is with the node.

    --full adds the decisions, each with its causes, the policy's rule and the actions; how far automation may go; the
    state of its agent; and its lemon score: what it has cost in its life.

    For a customer, show in plain words what happened, what it means, what is being done, and when the node should be
    back.

    With --server, no fleet repository is needed. The server knows who is a customer.

    Exit codes: 0 shown; 2 the node is unknown, or the ledger or the fleet cannot be read.
    """
    if server:
        document = FleetServer(server, token_file, ca).explain(node, last)
        if form == "json":
            typer.echo(format_answer(document, indent=1, ensure_ascii=False))
        else:
            _print_server_answer(document, server, is_full=is_full)
            if "chain" in document:  # customers have another page
                typer.echo(f"page: {server.rstrip('/')}/nodes/{node}")
        return
    workspace = Workspace(fleet.resolve())
    states = workspace.read_node_states()
    state = pick_node_state(workspace, states, node)
    if reader == "customer":
        absences = list_fleet_absences(workspace.fleet.policies.values(), states)
        situation = read_customer_situation(workspace, absences, state)
        _show(explain_to_customer(situation), form, workspace.clock.now())
    else:
        answer = explain_node(workspace, state, last)
        _show(answer, form, workspace.clock.now(), format_burn_in(state), is_full=is_full)
        workspace.print_page(form, "nodes", node)


def _print_server_answer(document: dict[str, Any], server: str, *, is_full: bool) -> None:
    """Print why a node is in its state, as a server has told it: to staff with a chain, to customers in plain words."""
    answer: ExplainAnswer | CustomerExplanation
    try:
        answer = from_json(ExplainAnswer, document) if "chain" in document else from_json(CustomerExplanation, document)
    except (KeyError, TypeError):
        fix = "use the assay of the server's version, or --format json"
        raise AssayError("the server's answer has another form", where=server, fix=fix) from None
    _show(answer, "text", datetime.now(UTC), is_full=is_full)


def _show(
    answer: ExplainAnswer | CustomerExplanation,
    form: str,
    now: datetime,
    burn_in: Iterable[str] = (),
    *,
    is_full: bool = False,
) -> None:
    if form == "json":
        typer.echo(format_answer(answer, indent=1, ensure_ascii=False))
        return
    if isinstance(answer, CustomerExplanation):
        typer.echo(format_customer_explanation(answer))
        return
    from assay.cli.output import open_console

    trust = format_node_trust(answer.trust)
    notes = [*burn_in, *format_notes(answer), *(format_node_sync(answer.sync) if answer.sync else ())]
    shown = [*trust, *notes, *filter(None, [answer.agent])] if is_full else [*trust[1:], *notes]
    open_console(PIPE_WIDTH).print(_make_grid(list_explanation_lines(answer, shown, now, is_full=is_full)))


def _make_grid(lines: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table

    from assay.cli.output import escape

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(escape(label), escape(text))
    return grid
