"""`assay explain NODE`: why a node is in its state, as a chain of evidence; in a terminal, as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from assay.cli.context_line import format_answer
from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, TokenFile
from assay.cli.options import FleetDir, OutputFormat, complete_nodes
from assay.cli.workspace import Workspace, pick_node_state
from assay.ledger.errors import LedgerError
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
from assay.tell.views.node_explanation import (
    ExplainAnswer,
    ExplainedDecision,
    LemonStatus,
    explain_node,
    format_agent,
    format_notes,
)
from assay.tell.views.node_sync import format_node_sync
from assay.tell.views.trust_view import format_node_trust

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree


MAX_REASONS_SHOWN = 5
_EFFECT_TEXTS = {"intent": "started", "done": "done, not yet verified", "unknown": "ended with unknown result"}
_EFFECT_COLOURS = {"verified": "green", "failed": "red", "unknown": "yellow"}
_RECORD_TEXTS = {
    "ticket": "a technician was asked for",
    "cordon": "[yellow]cordoned[/]",
    "withdraw": "the pending transition was withdrawn",
    "release": "the hold ended",
}


def build_explanation_tree(answer: ExplainAnswer, notes: Iterable[str]) -> Tree:
    """Return the answer as a tree: who holds the node, what it waits for, and its decisions with their causes."""
    from rich.tree import Tree

    from assay.cli.output import escape

    since = f"since {format_second(answer.since)}: {escape(answer.because)}"
    tree = Tree(f"[bold]{escape(answer.node)}[/] is in [bold]{escape(answer.state)}[/] {since}")
    if hold := answer.held:
        until = f" until {format_second(hold.until)} UTC" if hold.until else ""
        tree.add(f"[yellow]held by {escape(hold.who)}[/] since {format_second(hold.at)}{until}: {escape(hold.reason)}")
    if request := answer.asked:
        who, reason = escape(request.who), escape(request.reason)
        tree.add(f"[yellow]{who} asked for {escape(request.to)}[/] at {format_second(request.at)}: {reason}")
    if pending := answer.pending:
        next_ = "stays cordoned" if pending.to == answer.state else f"will go to {escape(pending.to)}"
        tree.add(f"[yellow]{next_}[/], waits for {escape(', '.join(pending.blockers))}")
    if unknown := answer.jobs_unknown:
        tree.add(f"[yellow]jobs unknown[/] since {format_second(unknown.since)}: {escape(unknown.reason)}")
    for decision in answer.chain:
        _add_causes(tree.add(_format_headline(decision)), decision)
    for note in [*answer.returned, *notes]:
        tree.add(f"[yellow]now[/] {escape(note)}")
    if answer.lemon and answer.lemon.points:
        _add_lemon_branch(tree, answer.lemon)
    return tree


def _format_headline(decision: ExplainedDecision) -> str:
    at = format_second(decision.at)
    if decision.timing == "record":
        if decision.remedy == "wait":
            return f"{at}  [yellow]not yet to {decision.to_state}[/]"
        return f"{at}  {_RECORD_TEXTS.get(decision.remedy, 'recorded, no action')}"
    if decision.from_state == decision.to_state:
        return f"{at}  [bold]{decision.remedy}[/], the state stays"
    arrow = f"[bold]{decision.from_state} → {decision.to_state}[/]"
    return f"{at}  {arrow}{' when idle' if decision.timing == 'pending' else ''}"


def _add_causes(branch: Tree, decision: ExplainedDecision) -> None:
    from assay.cli.output import escape

    for cause in decision.because:
        leaf = branch.add(f"[dim]because of[/] {cause.kind}: {escape(cause.text)}")
        if (outcome := cause.outcome) and outcome.evidence:
            at = format_second(outcome.evidence_at)
            leaf.add(f"[dim]evidence {outcome.evidence[:12]} of {at}, run {outcome.run}[/]")
    branch.add(f"[dim]by the rule[/] {escape(decision.rule)}")
    for effect in decision.effects:
        colour = _EFFECT_COLOURS.get(effect.standing, "dim")
        reason = f": {escape(effect.reason)}" if effect.reason else ""
        text = _EFFECT_TEXTS.get(effect.standing, effect.standing)
        branch.add(f"[dim]effect[/] {effect.action} [{colour}]{text}[/] {format_second(effect.at)}{reason}")


def _add_lemon_branch(tree: Tree, lemon: LemonStatus) -> None:
    from assay.cli.output import escape

    verdict = "; [red]a lemon[/]: its next fault goes to people" if lemon.is_lemon else ""
    branch = tree.add(f"{escape(lemon.summary)}{verdict}")
    for reason in lemon.reasons[-MAX_REASONS_SHOWN:]:
        because = f": {escape(reason.because)}" if reason.because else ""
        branch.add(f"[dim]{reason.weight:g} for[/] {reason.what}, {format_minute(reason.at)}{because}")
    if len(lemon.reasons) > MAX_REASONS_SHOWN:
        branch.add(f"[dim]and {len(lemon.reasons) - MAX_REASONS_SHOWN} earlier, see --format json[/]")


INCIDENTS_SHOWN, SEEN_SHOWN, DONE_SHOWN, NOTES_SHOWN = 3, 4, 6, 8


def list_explanation_lines(answer: ExplainAnswer, notes: Iterable[str], now: datetime) -> Iterator[tuple[str, str]]:
    """Yield what a person asks first, each with its label: what broke, since when, why, what was done, who acts."""
    because = "" if answer.incidents else f": {answer.because}"
    yield answer.node, f"{answer.state} since {format_minute(answer.since)} ({format_ago(answer.since, now)}){because}"
    for number, incident in enumerate(answer.incidents[:INCIDENTS_SHOWN]):
        again = f", {incident.earlier} times before" if incident.earlier else ""
        since = f"since {format_minute(incident.since)} ({format_ago(incident.since, now)}){again}"
        yield "what", f"{incident.happened} ({incident.fault_class}, {incident.severity}), {since}"
        yield from _label("why", incident.seen, SEEN_SHOWN)
        if not number:
            steps = [f"{format_minute(step.at)} {step.text}" for step in incident.done]
            yield from _label("done", steps[-DONE_SHOWN:], DONE_SHOWN)
    if (more := len(answer.incidents) - INCIDENTS_SHOWN) > 0:
        yield "", f"and {more} more incidents: --format json"
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
    yield from _label("now", [*answer.returned, *notes], NOTES_SHOWN)


def _label(label: str, lines: Sequence[str], most: int) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines[:most]):
        yield "" if number else label, line
    if more := len(lines[most:]):
        yield "", f"and {more} more: --full"


explain_app = typer.Typer(add_completion=False)

PIPE_WIDTH = 200
"""Columns of the tree when stdout is not a terminal."""


@explain_app.command()
def explain(
    node: Annotated[
        str, typer.Argument(metavar="NODE", autocompletion=complete_nodes, help="The node.", show_default=False)
    ],
    is_full: Annotated[
        bool, typer.Option("--full", help="Show the decisions, as a tree with all their causes.")
    ] = False,
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=0, help="With --full or JSON: the last N decisions; 0 for all.")
    ] = 8,
    reader: Annotated[
        Literal["engineer", "customer"],
        typer.Option(
            "--for",
            help="engineer (default): the chain of evidence. customer: plain words, without codes, ids and names.",
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

    --full shows the decisions instead, each with its causes, the policy's rule and the actions; how far automation may
    go; the state of its agent; and its lemon score: what it has cost in its life, and why.

    For a customer, show in plain words what happened, what it means, what is being done, and when the node should be
    back.

    If the ledger cannot be read, show what the inventory says of the node; its state is unknown.

    With --server, no fleet repository is needed. The server knows who is a customer.

    Exit codes: 0 shown; 2 the node is unknown, or the ledger or the fleet cannot be read.
    """
    if server:
        document = FleetServer(server, token_file, ca).explain(node, last)
        if form == "json":
            typer.echo(format_answer(document, indent=1, ensure_ascii=False))
        else:
            _print_server_answer(document, server, is_full=is_full)
        return
    workspace = Workspace(fleet.resolve())
    try:
        states = workspace.read_node_states()
        state = pick_node_state(workspace, states, node)
        if reader == "customer":
            _show(explain_to_customer(read_customer_situation(workspace, states, state)), form, workspace.clock.now())
        else:
            answer = explain_node(workspace, state, last)
            _show(answer, form, workspace.clock.now(), format_burn_in(state), is_full=is_full)
    except LedgerError as error:
        from assay.cli.without_ledger import show_customer_without_ledger, show_nodes_without_ledger

        if reader == "customer":
            show_customer_without_ledger(workspace, error, form, node)
        show_nodes_without_ledger(workspace, error, form, node)


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
    from rich.console import Console

    trust = format_node_trust(answer.trust)
    notes = [*burn_in, *format_notes(answer, now), *(format_node_sync(answer.sync) if answer.sync else ())]
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    if is_full:
        agent = [format_agent(answer.agent, now)] if answer.agent else []
        console.print(build_explanation_tree(answer, [*notes, *agent, *trust]))
    else:
        console.print(_make_grid(list_explanation_lines(answer, [*trust[1:], *notes], now)))


def _make_grid(lines: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table

    from assay.cli.output import escape

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in lines:
        grid.add_row(escape(label), escape(text))
    return grid
