"""`assay status`: where every node is, since when, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.holding import until_when
from assay.cli.roll import ago, stories_and_returned

if TYPE_CHECKING:
    from datetime import datetime

    from rich.table import Table

    from assay.lifecycle.story import Opened, Story

app = typer.Typer(add_completion=False, help="Show where every node is.")


@app.command()
def status(fleet: FleetDir = Path(), form: Format = "text") -> None:
    """Show where every node is, since when, what it waits for, who holds it, and why it is there."""
    desk = Desk(fleet.resolve())
    known, returned = stories_and_returned(desk)
    if not known:
        _ = desk.fleet  # a folder that is no fleet repository says so
    if form == "json":
        typer.echo(json.dumps({"nodes": [as_json(story, returned.get(story.node, ())) for story in known]}, indent=1))
    elif known:
        _show(known, returned, desk.clock.now())
    else:
        typer.echo(f"No node was looked at yet{_elsewhere(desk)}. Run: assay reconcile --once")


def _elsewhere(desk: Desk) -> str:
    """Return which ledger says so, where that is not the fleet's own: its name may be mistyped."""
    where = desk.ledger_at
    if where == (desk.home / "ledger.sqlite").absolute():
        return ""
    name = f": {where}" if isinstance(where, Path) else ""  # a URL may hold a password
    return f", says the ledger that ASSAY_LEDGER names{name}"


def as_json(story: Story, returned: Sequence[str] = ()) -> dict[str, Any]:
    """Return one node's line of `status --format json`."""
    pending, held, asked = story.pending, story.held, story.asked
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
        "opened": [{"at": one.at, "reason": one.reason} for one in _opened(story)],
        "returned": list(returned),
        "because": story.note or story.because,
    }


def _show(known: list[Story], returned: Mapping[str, Sequence[str]], now: datetime) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    console.print(_table(known, returned, now))
    counts = Counter(story.state for story in known)
    console.print("[dim]" + ", ".join(f"{count} {state}" for state, count in counts.most_common()) + "[/]")


def _table(known: list[Story], returned: Mapping[str, Sequence[str]], now: datetime) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for title, wraps in (("node", False), ("pool", False), ("state", False), ("since", False), ("why", True)):
        table.add_column(title, no_wrap=not wraps, overflow="fold")
    for story in known:
        why = "\n".join([_why(story, now), *returned.get(story.node, ())])
        table.add_row(story.node, story.pool, _state(story), ago(story.since, now), escape(why))
    return table


def _state(story: Story) -> str:
    if story.pending and story.pending.to == story.state:
        return f"[yellow]{story.state}, cordoned[/]"
    if story.pending:
        return f"[yellow]{story.state} → {story.pending.to}[/]"
    return story.state if story.state == "production" else f"[cyan]{story.state}[/]"


def _why(story: Story, now: datetime) -> str:
    lines = []
    if story.held:
        until = f" {until_when(story.held.until, now)}" if story.held.until else ""
        lines.append(f"held by {story.held.who}, {ago(story.held.at, now)}{until}: {story.held.reason}")
    if story.asked:
        lines.append(f"{story.asked.who} asked for {story.asked.to}, {ago(story.asked.at, now)}: {story.asked.reason}")
    if pending := story.pending:
        because = "; ".join(cause.text for cause in pending.because)
        lines.append(f"waits for {', '.join(pending.blockers)}, {ago(pending.since, now)}: {because}")
    lines += [f"{ago(one.at, now)}: {one.reason}" for one in _opened(story)[-1:]]
    return "\n".join([*lines, story.note or story.because])


def _opened(story: Story) -> list[Opened]:
    """Return when the node was opened by others, while it has been where it is."""
    return [one for one in story.opened if one.stay == story.stay]
