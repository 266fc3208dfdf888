"""`assay status`: where every node is, since when, and why.

`assay explain NODE`: why a node is where it is, as a chain of evidence.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.hold_expiry import format_hold_end
from assay.cli.node_lookup import (
    describe_returned_parts,
    find_node_state,
    format_ago,
    load_node_states_and_returned_parts,
)
from assay.cli.render import node_explanation
from assay.cli.render.node_explanation import (
    DecisionLink,
    build_decision_chain,
    describe_requirements,
    format_requirements,
)
from assay.cli.workspace import FleetDir, OutputFormat, Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from rich.table import Table

    from assay.lifecycle.node_state import LostCordon, NodeState

status_app = typer.Typer(add_completion=False, help="Show where every node is.")


@status_app.command()
def status(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show where every node is, since when, what it waits for, who holds it, and why it is there."""
    desk = Workspace(fleet.resolve())
    known, returned = load_node_states_and_returned_parts(desk)
    if not known:
        _ = desk.fleet  # a folder that is no fleet repository says so
    if form == "json":
        typer.echo(
            json.dumps(
                {"nodes": [node_status_as_json(story, returned.get(story.node, ())) for story in known]}, indent=1
            )
        )
    elif known:
        _print_status(known, returned, desk.clock.now())
    else:
        typer.echo(f"No node was looked at yet{_describe_foreign_ledger(desk)}. Run: assay reconcile --once")


def _describe_foreign_ledger(desk: Workspace) -> str:
    """Return which ledger says so, where that is not the fleet's own: its name may be mistyped."""
    where = desk.ledger_location
    if where == (desk.data_dir / "ledger.sqlite").absolute():
        return ""
    name = f": {where}" if isinstance(where, Path) else ""  # a URL may hold a password
    return f", says the ledger that ASSAY_LEDGER names{name}"


def node_status_as_json(story: NodeState, returned: Sequence[str] = ()) -> dict[str, Any]:
    """Return one node's line of `status --format json`."""
    pending, held, asked = story.pending, story.hold, story.move_request
    return {
        "node": story.node,
        "pool": story.pool,
        "state": story.state,
        "since": story.since,
        "pending": pending
        and {
            "to": pending.to,
            "since": pending.since,
            "waiting_for": list(pending.blockers),
            "because": "; ".join(cause.text for cause in pending.because),
        },
        "held": held and {"who": held.who, "reason": held.reason, "since": held.at, "until": held.until},
        "asked": asked and {"to": asked.to, "who": asked.who, "reason": asked.reason, "since": asked.at},
        "opened": [{"at": one.at, "reason": one.reason} for one in _opened_by_others(story)],
        "returned": list(returned),
        "because": story.note or story.reason,
    }


def _print_status(known: list[NodeState], returned: Mapping[str, Sequence[str]], now: datetime) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    console.print(_table(known, returned, now))
    counts = Counter(story.state for story in known)
    console.print("[dim]" + ", ".join(f"{count} {state}" for state, count in counts.most_common()) + "[/]")


def _table(known: list[NodeState], returned: Mapping[str, Sequence[str]], now: datetime) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for title, wraps in (("node", False), ("pool", False), ("state", False), ("since", False), ("why", True)):
        table.add_column(title, no_wrap=not wraps, overflow="fold")
    for story in known:
        why = "\n".join([_format_reasons(story, now), *returned.get(story.node, ())])
        table.add_row(story.node, story.pool, _format_state(story), format_ago(story.since, now), escape(why))
    return table


def _format_state(story: NodeState) -> str:
    if story.pending and story.pending.to == story.state:
        return f"[yellow]{story.state}, cordoned[/]"
    if story.pending:
        return f"[yellow]{story.state} → {story.pending.to}[/]"
    return story.state if story.state == "production" else f"[cyan]{story.state}[/]"


def _format_reasons(story: NodeState, now: datetime) -> str:
    lines = []
    if story.hold:
        until = f" {format_hold_end(story.hold.until, now)}" if story.hold.until else ""
        lines.append(f"held by {story.hold.who}, {format_ago(story.hold.at, now)}{until}: {story.hold.reason}")
    if story.move_request:
        lines.append(
            f"{story.move_request.who} asked for {story.move_request.to}, {format_ago(story.move_request.at, now)}: {story.move_request.reason}"
        )
    if pending := story.pending:
        because = "; ".join(cause.text for cause in pending.because)
        lines.append(f"waits for {', '.join(pending.blockers)}, {format_ago(pending.since, now)}: {because}")
    lines += [f"{format_ago(one.at, now)}: {one.reason}" for one in _opened_by_others(story)[-1:]]
    return "\n".join([*lines, story.note or story.reason])


def _opened_by_others(story: NodeState) -> list[LostCordon]:
    """Return when the node was opened by others, while it has been where it is."""
    return [one for one in story.lost_cordons if one.stay_id == story.stay_id]


if TYPE_CHECKING:
    from rich.tree import Tree

explain_app = typer.Typer(add_completion=False, help="Show why, as a chain of evidence.")

Last = Annotated[int, typer.Option("--last", min=0, help="How many decisions to explain; 0 for all.")]
_EFFECT_WORDS = {"intent": "was begun", "done": "was done, not yet verified", "unknown": "ended nobody knows how"}
_COLOURS = {"verified": "green", "failed": "red", "unknown": "yellow"}


@explain_app.command()
def explain(
    node: Annotated[str, typer.Argument(metavar="NODE")],
    last: Last = 8,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show the decisions that brought a node to where it is: what caused each, by which rule, and what was done.

    Then what its state still waits for, what fails and decides nothing (known issues, and checks that observe), faults
    that no pass has looked at yet, and how its agent is.
    """
    desk = Workspace(fleet.resolve())
    story = find_node_state(desk, node)
    links, told, new = (
        build_decision_chain(desk.ledger, story, last),
        describe_requirements(desk, story),
        node_explanation.describe_recent_news(desk, story),
    )
    now = node_status_as_json(story, describe_returned_parts(desk, node))
    if form == "json":
        typer.echo(json.dumps({**now, "chain": links, **told, **new}, indent=1, ensure_ascii=False))
        return
    _print_tree(_build_tree(now, links, [*format_requirements(told), *node_explanation.format_recent_news(desk, new)]))


def _print_tree(tree: Tree) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    console.print(tree)


def _build_tree(now: DecisionLink, links: list[DecisionLink], told: Iterable[str]) -> Tree:
    from rich.markup import escape
    from rich.tree import Tree

    tree = Tree(
        f"[bold]{now['node']}[/] is in [bold]{now['state']}[/] since {_format_time(now['since'])}: {escape(now['because'])}"
    )
    if held := now["held"]:
        until = f" until {_format_time(held['until'])} UTC" if held["until"] else ""
        since = f"since {_format_time(held['since'])}{until}"
        tree.add(f"[yellow]held by {escape(held['who'])}[/] {since}: {escape(held['reason'])}")
    if asked := now["asked"]:
        who, why = escape(asked["who"]), escape(asked["reason"])
        tree.add(f"[yellow]{who} asked for {escape(asked['to'])}[/] at {_format_time(asked['since'])}: {why}")
    if pending := now["pending"]:
        will = "stays cordoned" if pending["to"] == now["state"] else f"will go to {pending['to']}"
        tree.add(f"[yellow]{will}[/], waits for {escape(', '.join(pending['waiting_for']))}")
    for link in links:
        _add_causes(tree.add(_headline(link)), link)
    for line in [*now["returned"], *told]:
        tree.add(f"[yellow]now[/] {escape(line)}")
    return tree


def _headline(link: DecisionLink) -> str:
    if link["timing"] == "record":
        what = {
            "ticket": "a technician was asked for",
            "cordon": "[yellow]closed again[/]",
            "wait": f"[yellow]not yet to {link['to']}[/]",
            "withdraw": "what waited was taken back",
            "release": "the hold ended",
        }
        return f"{_format_time(link['at'])}  {what.get(link['remedy'], 'noted, nothing done')}"
    if link["from"] == link["to"]:
        return f"{_format_time(link['at'])}  [bold]{link['remedy']}[/], with its state as it was"
    arrow = f"[bold]{link['from']} → {link['to']}[/]"
    return f"{_format_time(link['at'])}  {arrow}{' when idle' if link['timing'] == 'pending' else ''}"


def _add_causes(branch: Tree, link: DecisionLink) -> None:
    from rich.markup import escape

    for cause in link["because"]:
        leaf = branch.add(f"[dim]because of[/] {cause['kind']}: {escape(cause['text'])}")
        if cause.get("evidence"):
            leaf.add(
                f"[dim]evidence {cause['evidence'][:12]} of {_format_time(cause['evidence_at'])}, run {cause['run']}[/]"
            )
    branch.add(f"[dim]by the rule[/] {escape(link['rule'])}")
    for effect in link["effects"]:
        colour = _COLOURS.get(effect["standing"], "dim")
        reason = f": {escape(effect['reason'])}" if effect["reason"] else ""
        standing = _EFFECT_WORDS.get(effect["standing"], effect["standing"])
        branch.add(f"[dim]did[/] {effect['action']} [{colour}]{standing}[/] {_format_time(effect['at'])}{reason}")


def _format_time(at: str) -> str:
    return at[:19].replace("T", " ")
