"""The nodes of a fleet as tables: how many of each pool are in which state, and one row for each node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from rich import box
from rich.table import Table

from assay.act.orders.hold_end import format_hold_end
from assay.cli.markup import escape
from assay.decide.state.node_state import NodeState
from assay.model.timestamps import format_ago
from assay.tell.views.burn_in_status import describe_burn_in_of_stay
from assay.tell.views.node_status import list_current_lost_cordons

PIPE_WIDTH = 160
"""Columns of the table when stdout is not a terminal."""


def needs_a_look(state: NodeState, in_service: Collection[str] | None) -> bool:
    """Whether a node is out of service, waits to leave it, or is held. Without known states in service: always."""
    return in_service is None or state.state not in in_service or bool(state.pending or state.hold)


def make_counts_table(states: Iterable[NodeState]) -> Table:
    """Return a row for each pool, with the number of its nodes in each state. The most common state comes first."""
    by_pool: dict[str, Counter[str]] = defaultdict(Counter)
    for state in states:
        by_pool[state.pool][state.state] += 1
    columns = [name for name, _ in sum(by_pool.values(), Counter[str]()).most_common()]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for title in ("pool", "nodes", *columns):
        table.add_column(title, justify="left" if title == "pool" else "right", overflow="fold")
    for pool, counts in sorted(by_pool.items()):
        cells = [f"{counts[name]:,}" if counts[name] else "" for name in columns]
        table.add_row(escape(pool), f"{counts.total():,}", *cells)
    return table


def make_table(
    states: list[NodeState], returned: Mapping[str, Sequence[str]], now: datetime, plain: Collection[str] | None
) -> Table:
    """Return the table of all nodes. States out of service are coloured: those that are not among `plain`."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for title, wraps in (("node", False), ("pool", False), ("state", False), ("since", False), ("why", True)):
        table.add_column(title, no_wrap=not wraps, overflow="fold")
    for state in states:
        why = "\n".join(map(escape, [*_format_reasons(state, now), *returned.get(state.node, ())]))
        table.add_row(state.node, state.pool, _format_state(state, plain), format_ago(state.since, now), why)
    return table


def _format_state(state: NodeState, plain: Collection[str] | None) -> str:
    if state.pending and state.pending.to == state.state:
        return f"[yellow]{state.state}, cordoned[/]"
    if state.pending:
        return f"[yellow]{state.state} → {state.pending.to}[/]"
    return state.state if plain is None or state.state in plain else f"[cyan]{state.state}[/]"


def _format_reasons(state: NodeState, now: datetime) -> list[str]:
    lines = []
    if hold := state.hold:
        until = f" {format_hold_end(hold.until, now)}" if hold.until else ""
        lines.append(f"held by {hold.who}, {format_ago(hold.at, now)}{until}: {hold.reason}")
    if request := state.move_request:
        lines.append(f"{request.who} asked for {request.to}, {format_ago(request.at, now)}: {request.reason}")
    if pending := state.pending:
        because = "; ".join(cause.text for cause in pending.because)
        lines.append(f"waits for {', '.join(pending.blockers)}, {format_ago(pending.since, now)}: {because}")
    if burning := describe_burn_in_of_stay(state):
        lines.append(burning)
    lines += [f"{format_ago(lost.at, now)}: {lost.reason}" for lost in list_current_lost_cordons(state)[-1:]]
    return [*lines, state.note or state.reason]
