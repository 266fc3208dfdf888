"""`assay explain NODE`: why a node is in its state, as a chain of evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.customer_situation import find_fault_catalog, read_customer_situation
from assay.cli.node_rollout import find_node_rollout, format_node_rollout, node_rollout_as_json
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.recorded_node_states import (
    describe_returned_parts,
    find_node_state,
    load_node_states,
    pick_node_state,
)
from assay.cli.render.code_meanings import add_code_meanings
from assay.cli.render.lemon_explanation import add_lemon_branch, describe_lemon_score
from assay.cli.render.loads.burn_in_status import format_burn_in
from assay.cli.render.node_explanation import (
    build_decision_chain,
    build_explanation_tree,
    describe_recent_news,
    describe_requirements,
    format_recent_news,
    format_requirements,
)
from assay.cli.render.node_status import node_status_as_json
from assay.cli.render.sync_table import format_node_sync, node_sync_as_json
from assay.cli.sync_inputs import find_node_sync
from assay.cli.workspace import Workspace
from assay.ledger.errors import LedgerError

if TYPE_CHECKING:
    from rich.tree import Tree

explain_app = typer.Typer(add_completion=False)

PIPE_WIDTH = 200
"""Columns of the tree when stdout is not a terminal."""


@explain_app.command()
def explain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.", show_default=False)],
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
) -> None:
    """Show the decisions that brought a node into its state: their causes, the policy's rule, and the actions.

    Then show what its state still requires, failures that decide nothing (known issues, observed checks), what differs
    from the fleet repository (`assay sync`), its burn-in, how far the active rollout is with the node, faults that no
    round has decided on yet, the state of its agent, and its lemon score: what it has cost in its life, and why.

    For a customer, show in plain words what happened, what it means, what is being done, and when the node should be
    back.

    If the ledger cannot be read, show what the inventory says of the node; its state is unknown.

    Exit codes: 0 shown; 2 the node is unknown, or the ledger or the fleet cannot be read.
    """
    workspace = Workspace(fleet.resolve())
    try:
        if reader == "customer":
            _explain_to_customer(workspace, node, form)
        else:
            _explain(workspace, node, last, form)
    except LedgerError as error:
        from assay.cli.render.without_ledger import show_customer_without_ledger, show_nodes_without_ledger

        if reader == "customer":
            show_customer_without_ledger(workspace, error, form, node)
        show_nodes_without_ledger(workspace, error, form, node)


def _explain_to_customer(workspace: Workspace, node: str, form: str) -> None:
    from assay.cli.render.customer_explanation import customer_explanation_as_json, format_customer_explanation

    states = load_node_states(workspace)
    situation = read_customer_situation(workspace, states, pick_node_state(workspace, states, node))
    if form == "json":
        typer.echo(json.dumps(customer_explanation_as_json(situation), indent=1, ensure_ascii=False))
        return
    typer.echo(format_customer_explanation(situation))


def _explain(workspace: Workspace, node: str, last: int, form: str) -> None:
    from assay.controller.cache.unknown_jobs import read_unknown_jobs

    state = find_node_state(workspace, node)
    chain = build_decision_chain(workspace.ledger_for_reading, state, last)
    requirements = describe_requirements(workspace, state)
    news = describe_recent_news(workspace, state)
    causes = [cause for decision in chain for cause in decision["because"]]
    add_code_meanings(find_fault_catalog(workspace), [*causes, *news["told"], *requirements["undecided"]])
    unknown_jobs = read_unknown_jobs(workspace.data_dir).get(state.node)
    status = node_status_as_json(state, describe_returned_parts(workspace, node), unknown_jobs)
    lemon, sync = describe_lemon_score(workspace, state), find_node_sync(workspace, state)
    rollout = find_node_rollout(workspace, state.node)
    if form == "json":
        compared = {"sync": sync and node_sync_as_json(sync), "rollout": rollout and node_rollout_as_json(rollout)}
        parts = {**status, "chain": chain, **requirements, **news, **compared, "lemon": lemon}
        typer.echo(json.dumps(parts, indent=1, ensure_ascii=False))
        return
    differences = format_node_sync(sync) if sync else ()
    rolling = format_node_rollout(rollout) if rollout else ()
    notes = [
        *format_burn_in(state),
        *format_requirements(requirements),
        *rolling,
        *differences,
        *format_recent_news(workspace, news),
    ]
    tree = build_explanation_tree(status, chain, notes)
    add_lemon_branch(tree, lemon)
    _print_tree(tree)


def _print_tree(tree: Tree) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    console.print(tree)
