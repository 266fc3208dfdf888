"""`assay explain NODE`: why a node is where it is, as a chain of evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli import lately
from assay.cli.chain import Plain, chain
from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.roll import returned_to, story_of
from assay.cli.standing import lines, standing
from assay.cli.status import as_json

if TYPE_CHECKING:
    from rich.tree import Tree

app = typer.Typer(add_completion=False, help="Show why, as a chain of evidence.")

Last = Annotated[int, typer.Option("--last", min=0, help="How many decisions to explain; 0 for all.")]
_STANDINGS = {"intent": "was begun", "done": "was done, not yet verified", "unknown": "ended nobody knows how"}
_COLOURS = {"verified": "green", "failed": "red", "unknown": "yellow"}


@app.command()
def explain(
    node: Annotated[str, typer.Argument(metavar="NODE")],
    last: Last = 8,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Show the decisions that brought a node to where it is: what caused each, by which rule, and what was done.

    Then what its state still waits for, what fails and decides nothing (known issues, and checks that observe), faults
    that no pass has looked at yet, and how its agent is.
    """
    desk = Desk(fleet.resolve())
    story = story_of(desk, node)
    links, told, new = chain(desk.ledger, story, last), standing(desk, story), lately.lately(desk, story)
    now = as_json(story, returned_to(desk, node))
    if form == "json":
        typer.echo(json.dumps({**now, "chain": links, **told, **new}, indent=1, ensure_ascii=False))
        return
    _print(_tree(now, links, [*lines(told), *lately.lines(desk, new)]))


def _print(tree: Tree) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    console.print(tree)


def _tree(now: Plain, links: list[Plain], told: Iterable[str]) -> Tree:
    from rich.markup import escape
    from rich.tree import Tree

    tree = Tree(
        f"[bold]{now['node']}[/] is in [bold]{now['state']}[/] since {_short(now['since'])}: {escape(now['because'])}"
    )
    if held := now["held"]:
        until = f" until {_short(held['until'])} UTC" if held["until"] else ""
        since = f"since {_short(held['since'])}{until}"
        tree.add(f"[yellow]held by {escape(held['who'])}[/] {since}: {escape(held['reason'])}")
    if asked := now["asked"]:
        who, why = escape(asked["who"]), escape(asked["reason"])
        tree.add(f"[yellow]{who} asked for {escape(asked['to'])}[/] at {_short(asked['since'])}: {why}")
    if pending := now["pending"]:
        will = "stays cordoned" if pending["to"] == now["state"] else f"will go to {pending['to']}"
        tree.add(f"[yellow]{will}[/], waits for {escape(', '.join(pending['waiting_for']))}")
    for link in links:
        _link(tree.add(_headline(link)), link)
    for line in [*now["returned"], *told]:
        tree.add(f"[yellow]now[/] {escape(line)}")
    return tree


def _headline(link: Plain) -> str:
    if link["timing"] == "record":
        what = {
            "ticket": "a technician was asked for",
            "cordon": "[yellow]closed again[/]",
            "wait": f"[yellow]not yet to {link['to']}[/]",
            "withdraw": "what waited was taken back",
            "release": "the hold ended",
        }
        return f"{_short(link['at'])}  {what.get(link['remedy'], 'noted, nothing done')}"
    if link["from"] == link["to"]:
        return f"{_short(link['at'])}  [bold]{link['remedy']}[/], with its state as it was"
    arrow = f"[bold]{link['from']} → {link['to']}[/]"
    return f"{_short(link['at'])}  {arrow}{' when idle' if link['timing'] == 'pending' else ''}"


def _link(branch: Tree, link: Plain) -> None:
    from rich.markup import escape

    for cause in link["because"]:
        leaf = branch.add(f"[dim]because of[/] {cause['kind']}: {escape(cause['text'])}")
        if cause.get("evidence"):
            leaf.add(f"[dim]evidence {cause['evidence'][:12]} of {_short(cause['evidence_at'])}, run {cause['run']}[/]")
    branch.add(f"[dim]by the rule[/] {escape(link['rule'])}")
    for effect in link["effects"]:
        colour = _COLOURS.get(effect["standing"], "dim")
        reason = f": {escape(effect['reason'])}" if effect["reason"] else ""
        standing = _STANDINGS.get(effect["standing"], effect["standing"])
        branch.add(f"[dim]did[/] {effect['action']} [{colour}]{standing}[/] {_short(effect['at'])}{reason}")


def _short(at: str) -> str:
    return at[:19].replace("T", " ")
