"""`assay explain NODE`: why a node is in its state, as a chain of evidence; in a terminal, as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from assay.cli.context_line import format_answer
from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, TokenFile
from assay.cli.options import FleetDir, OutputFormat, complete_nodes
from assay.cli.workspace import Workspace, find_node_state, pick_node_state
from assay.ledger.errors import LedgerError
from assay.model.facts import to_json
from assay.model.timestamps import format_minute, format_second
from assay.tell.customer.customer_situation import read_customer_situation
from assay.tell.views.burn_in_status import format_burn_in
from assay.tell.views.explanation import explain_node
from assay.tell.views.node_explanation import format_code_meaning, format_recent_news, format_requirements
from assay.tell.views.node_sync import find_node_rollout, format_node_rollout, format_node_sync
from assay.tell.views.trust_view import find_node_trust, format_node_trust

if TYPE_CHECKING:
    from rich.tree import Tree


MAX_REASONS_SHOWN = 5
_EFFECT_TEXTS = {"intent": "started", "done": "done, not yet verified", "unknown": "ended with unknown result"}
_EFFECT_COLOURS = {"verified": "green", "failed": "red", "unknown": "yellow"}
_RECORD_TEXTS = {
    "ticket": "a technician was asked for",
    "cordon": "[yellow]cordoned again[/]",
    "withdraw": "the pending transition was withdrawn",
    "release": "the hold ended",
}


def build_explanation_tree(status: Mapping[str, Any], chain: Iterable[Mapping[str, Any]], notes: Iterable[str]) -> Tree:
    """Return the answer as a tree: who holds the node, what it waits for, and its decisions with their causes."""
    from rich.tree import Tree

    from assay.cli.output import escape

    since = f"since {format_second(status['since'])}: {escape(status['because'])}"
    tree = Tree(f"[bold]{status['node']}[/] is in [bold]{status['state']}[/] {since}")
    if hold := status["held"]:
        until = f" until {format_second(hold['until'])} UTC" if hold["until"] else ""
        since = f"since {format_second(hold['since'])}{until}"
        tree.add(f"[yellow]held by {escape(hold['who'])}[/] {since}: {escape(hold['reason'])}")
    if request := status["asked"]:
        who, reason = escape(request["who"]), escape(request["reason"])
        at = format_second(request["since"])
        tree.add(f"[yellow]{who} asked for {escape(request['to'])}[/] at {at}: {reason}")
    if pending := status["pending"]:
        next_ = "stays cordoned" if pending["to"] == status["state"] else f"will go to {pending['to']}"
        tree.add(f"[yellow]{next_}[/], waits for {escape(', '.join(pending['waiting_for']))}")
    if unknown := status["jobs_unknown"]:
        tree.add(f"[yellow]jobs unknown[/] since {format_second(unknown['since'])}: {escape(unknown['reason'])}")
    for decision in chain:
        _add_causes(tree.add(_format_headline(decision)), decision)
    for note in [*status["returned"], *notes]:
        tree.add(f"[yellow]now[/] {escape(note)}")
    return tree


def _format_headline(decision: Mapping[str, Any]) -> str:
    at = format_second(decision["at"])
    if decision["timing"] == "record":
        if decision["remedy"] == "wait":
            return f"{at}  [yellow]not yet to {decision['to']}[/]"
        return f"{at}  {_RECORD_TEXTS.get(decision['remedy'], 'recorded, no action')}"
    if decision["from"] == decision["to"]:
        return f"{at}  [bold]{decision['remedy']}[/], the state stays"
    arrow = f"[bold]{decision['from']} → {decision['to']}[/]"
    return f"{at}  {arrow}{' when idle' if decision['timing'] == 'pending' else ''}"


def _add_causes(branch: Tree, decision: Mapping[str, Any]) -> None:
    from assay.cli.output import escape

    for cause in decision["because"]:
        leaf = branch.add(f"[dim]because of[/] {cause['kind']}: {escape(cause['text'])}")
        if meaning := format_code_meaning(cause):
            leaf.add(f"[dim]which means[/] {escape(meaning)}")
        if cause.get("evidence"):
            at = format_second(cause["evidence_at"])
            leaf.add(f"[dim]evidence {cause['evidence'][:12]} of {at}, run {cause['run']}[/]")
    branch.add(f"[dim]by the rule[/] {escape(decision['rule'])}")
    for effect in decision["effects"]:
        colour = _EFFECT_COLOURS.get(effect["standing"], "dim")
        reason = f": {escape(effect['reason'])}" if effect["reason"] else ""
        text = _EFFECT_TEXTS.get(effect["standing"], effect["standing"])
        branch.add(f"[dim]effect[/] {effect['action']} [{colour}]{text}[/] {format_second(effect['at'])}{reason}")


def add_lemon_branch(tree: Tree, lemon: Mapping[str, Any] | None) -> None:
    """Add the answer of `describe_lemon_score` to a tree: nothing for a node without points."""
    from assay.cli.output import escape

    if lemon is None or not lemon["points"]:
        return
    verdict = "; [red]a lemon[/]: its next fault goes to people" if lemon["is_lemon"] else ""
    branch = tree.add(f"{escape(lemon['summary'])}{verdict}")
    reasons = lemon["reasons"]
    for reason in reasons[-MAX_REASONS_SHOWN:]:
        because = f": {escape(reason['because'])}" if reason["because"] else ""
        branch.add(f"[dim]{reason['weight']:g} for[/] {reason['what']}, {format_minute(reason['at'])}{because}")
    if len(reasons) > MAX_REASONS_SHOWN:
        branch.add(f"[dim]and {len(reasons) - MAX_REASONS_SHOWN} earlier, see --format json[/]")


explain_app = typer.Typer(add_completion=False)

PIPE_WIDTH = 200
"""Columns of the tree when stdout is not a terminal."""


@explain_app.command()
def explain(
    node: Annotated[
        str, typer.Argument(metavar="NODE", autocompletion=complete_nodes, help="The node.", show_default=False)
    ],
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=0, help="Explain the last N decisions; 0 explains all.")
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
    """Show the decisions that brought a node into its state: their causes, the policy's rule, and the actions.

    Then show what its state still requires, failures that decide nothing (known issues, observed checks), what differs
    from the fleet repository (`assay sync`), its burn-in, how far the active rollout is with the node, faults that no
    round has decided on yet, the state of its agent, and its lemon score: what it has cost in its life, and why.

    For a customer, show in plain words what happened, what it means, what is being done, and when the node should be
    back.

    If the ledger cannot be read, show what the inventory says of the node; its state is unknown.

    With --server, no fleet repository is needed. The server knows who is a customer.

    Exit codes: 0 shown; 2 the node is unknown, or the ledger or the fleet cannot be read.
    """
    if server:
        _print_server_answer(FleetServer(server, token_file, ca).explain(node, last), form)
        return
    workspace = Workspace(fleet.resolve())
    try:
        if reader == "customer":
            _explain_to_customer(workspace, node, form)
        else:
            _explain(workspace, node, last, form)
    except LedgerError as error:
        from assay.cli.without_ledger import show_customer_without_ledger, show_nodes_without_ledger

        if reader == "customer":
            show_customer_without_ledger(workspace, error, form, node)
        show_nodes_without_ledger(workspace, error, form, node)


def _explain_to_customer(workspace: Workspace, node: str, form: str) -> None:
    from assay.tell.customer.customer_explanation import format_customer_explanation, make_customer_explanation

    states = workspace.read_node_states()
    situation = read_customer_situation(workspace, states, pick_node_state(workspace, states, node))
    if form == "json":
        typer.echo(format_answer(make_customer_explanation(situation), indent=1, ensure_ascii=False))
        return
    typer.echo(format_customer_explanation(situation))


def _explain(workspace: Workspace, node: str, last: int, form: str) -> None:
    state = find_node_state(workspace, node)
    answer = to_json(explain_node(workspace, state, last))
    if form == "json":
        typer.echo(format_answer(answer, indent=1, ensure_ascii=False))
        return
    rollout = find_node_rollout(workspace, state.node)
    notes = [
        *format_burn_in(state),
        *format_requirements(answer),
        *(format_node_rollout(rollout) if rollout else ()),
        *(format_node_sync(answer["sync"]) if answer["sync"] else ()),
        *format_recent_news(workspace, answer),
        *format_node_trust(find_node_trust(workspace.fleet, state)),
    ]
    tree = build_explanation_tree(answer, answer["chain"], notes)
    add_lemon_branch(tree, answer["lemon"])
    _print_tree(tree)


def _print_server_answer(answer: dict[str, Any], form: str) -> None:
    """Print why a node is in its state, as a server has told it: to staff with a chain, to customers in plain words."""
    from assay.tell.customer.customer_explanation import format_customer_texts

    if form == "json":
        typer.echo(format_answer(answer, indent=1, ensure_ascii=False))
    elif "chain" not in answer:
        typer.echo(format_customer_texts(answer))
    else:
        notes = [*format_requirements(answer), *(format_node_sync(answer["sync"]) if answer.get("sync") else ())]
        tree = build_explanation_tree(answer, answer["chain"], notes)
        add_lemon_branch(tree, answer["lemon"])
        _print_tree(tree)


def _print_tree(tree: Tree) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    console.print(tree)
