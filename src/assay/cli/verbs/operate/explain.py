"""`assay explain NODE`: why a node is in its state, as a chain of evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.node_lookup import describe_returned_parts, find_node_state
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.render.node_explanation import (
    build_decision_chain,
    describe_recent_news,
    describe_requirements,
    format_recent_news,
    format_requirements,
)
from assay.cli.render.node_status import node_status_as_json
from assay.cli.workspace import Workspace
from assay.model.timestamps import format_second

if TYPE_CHECKING:
    from rich.tree import Tree

explain_app = typer.Typer(add_completion=False)

PIPE_WIDTH = 200
"""Columns of the tree when stdout is not a terminal."""

_EFFECT_TEXTS = {"intent": "started", "done": "done, not yet verified", "unknown": "ended with unknown result"}
_EFFECT_COLOURS = {"verified": "green", "failed": "red", "unknown": "yellow"}
_RECORD_TEXTS = {
    "ticket": "a technician was asked for",
    "cordon": "[yellow]cordoned again[/]",
    "withdraw": "the pending transition was withdrawn",
    "release": "the hold ended",
}


@explain_app.command()
def explain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.", show_default=False)],
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=0, help="Explain the last N decisions; 0 explains all.")
    ] = 8,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show the decisions that brought a node into its state: their causes, the policy's rule, and the actions.

    Then show what its state still requires, failures that decide nothing (known issues, observed checks), faults that
    no pass has decided on yet, and the state of its agent.
    """
    workspace = Workspace(fleet.resolve())
    state = find_node_state(workspace, node)
    chain = build_decision_chain(workspace.ledger, state, last)
    requirements = describe_requirements(workspace, state)
    news = describe_recent_news(workspace, state)
    status = node_status_as_json(state, describe_returned_parts(workspace, node))
    if form == "json":
        typer.echo(json.dumps({**status, "chain": chain, **requirements, **news}, indent=1, ensure_ascii=False))
        return
    notes = [*format_requirements(requirements), *format_recent_news(workspace, news)]
    _print_tree(_build_tree(status, chain, notes))


def _print_tree(tree: Tree) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    console.print(tree)


def _build_tree(status: dict[str, Any], chain: list[dict[str, Any]], notes: Iterable[str]) -> Tree:
    from rich.markup import escape
    from rich.tree import Tree

    since = f"since {format_second(status['since'])}: {escape(status['because'])}"
    tree = Tree(f"[bold]{status['node']}[/] is in [bold]{status['state']}[/] {since}")
    if hold := status["held"]:
        until = f" until {format_second(hold['until'])} UTC" if hold["until"] else ""
        since = f"since {format_second(hold['since'])}{until}"
        tree.add(f"[yellow]held by {escape(hold['who'])}[/] {since}: {escape(hold['reason'])}")
    if request := status["asked"]:
        who, why = escape(request["who"]), escape(request["reason"])
        at = format_second(request["since"])
        tree.add(f"[yellow]{who} asked for {escape(request['to'])}[/] at {at}: {why}")
    if pending := status["pending"]:
        next_ = "stays cordoned" if pending["to"] == status["state"] else f"will go to {pending['to']}"
        tree.add(f"[yellow]{next_}[/], waits for {escape(', '.join(pending['waiting_for']))}")
    for decision in chain:
        _add_causes(tree.add(_format_headline(decision)), decision)
    for note in [*status["returned"], *notes]:
        tree.add(f"[yellow]now[/] {escape(note)}")
    return tree


def _format_headline(decision: dict[str, Any]) -> str:
    at = format_second(decision["at"])
    if decision["timing"] == "record":
        if decision["remedy"] == "wait":
            return f"{at}  [yellow]not yet to {decision['to']}[/]"
        return f"{at}  {_RECORD_TEXTS.get(decision['remedy'], 'recorded, no action')}"
    if decision["from"] == decision["to"]:
        return f"{at}  [bold]{decision['remedy']}[/], the state stays"
    arrow = f"[bold]{decision['from']} → {decision['to']}[/]"
    return f"{at}  {arrow}{' when idle' if decision['timing'] == 'pending' else ''}"


def _add_causes(branch: Tree, decision: dict[str, Any]) -> None:
    from rich.markup import escape

    for cause in decision["because"]:
        leaf = branch.add(f"[dim]because of[/] {cause['kind']}: {escape(cause['text'])}")
        if cause.get("evidence"):
            at = format_second(cause["evidence_at"])
            leaf.add(f"[dim]evidence {cause['evidence'][:12]} of {at}, run {cause['run']}[/]")
    branch.add(f"[dim]by the rule[/] {escape(decision['rule'])}")
    for effect in decision["effects"]:
        colour = _EFFECT_COLOURS.get(effect["standing"], "dim")
        reason = f": {escape(effect['reason'])}" if effect["reason"] else ""
        text = _EFFECT_TEXTS.get(effect["standing"], effect["standing"])
        branch.add(f"[dim]effect[/] {effect['action']} [{colour}]{text}[/] {format_second(effect['at'])}{reason}")
