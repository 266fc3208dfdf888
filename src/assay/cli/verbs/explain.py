"""`assay explain NODE`: why a node is in its state, as a chain of evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from assay.cli.completion import complete_nodes
from assay.cli.context_line import format_answer
from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, TokenFile
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.recorded_node_states import find_node_state, pick_node_state
from assay.cli.verbs.explanation_tree import add_lemon_branch, build_explanation_tree
from assay.cli.workspace import Workspace
from assay.ledger.errors import LedgerError
from assay.tell.customer.customer_situation import read_customer_situation
from assay.tell.views.burn_in_status import format_burn_in
from assay.tell.views.explanation import explain_node
from assay.tell.views.node_explanation import format_recent_news, format_requirements
from assay.tell.views.node_rollout import find_node_rollout, format_node_rollout
from assay.tell.views.node_sync import format_node_sync
from assay.tell.views.trust_view import find_node_trust, format_node_trust

if TYPE_CHECKING:
    from rich.tree import Tree

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
    from assay.tell.customer.customer_explanation import customer_explanation_as_json, format_customer_explanation

    states = workspace.read_node_states()
    situation = read_customer_situation(workspace, states, pick_node_state(workspace, states, node))
    if form == "json":
        typer.echo(format_answer(customer_explanation_as_json(situation), indent=1, ensure_ascii=False))
        return
    typer.echo(format_customer_explanation(situation))


def _explain(workspace: Workspace, node: str, last: int, form: str) -> None:
    state = find_node_state(workspace, node)
    told = explain_node(workspace, state, last)
    if form == "json":
        typer.echo(format_answer(told, indent=1, ensure_ascii=False))
        return
    rollout = find_node_rollout(workspace, state.node)
    notes = [
        *format_burn_in(state),
        *format_requirements(told),
        *(format_node_rollout(rollout) if rollout else ()),
        *(format_node_sync(told["sync"]) if told["sync"] else ()),
        *format_recent_news(workspace, told),
        *format_node_trust(find_node_trust(workspace.fleet, state)),
    ]
    tree = build_explanation_tree(told, told["chain"], notes)
    add_lemon_branch(tree, told["lemon"])
    _print_tree(tree)


def _print_server_answer(told: dict[str, Any], form: str) -> None:
    """Print why a node is in its state, as a server has told it: to staff with a chain, to customers in plain words."""
    from assay.tell.customer.customer_explanation import format_customer_texts

    if form == "json":
        typer.echo(format_answer(told, indent=1, ensure_ascii=False))
    elif "chain" not in told:
        typer.echo(format_customer_texts(told))
    else:
        notes = [*format_requirements(told), *(format_node_sync(told["sync"]) if told.get("sync") else ())]
        tree = build_explanation_tree(told, told["chain"], notes)
        add_lemon_branch(tree, told["lemon"])
        _print_tree(tree)


def _print_tree(tree: Tree) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    console.print(tree)
