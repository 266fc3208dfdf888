"""`assay status`: the state of every node, since when, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, TokenFile, print_nodes
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.recorded_node_states import load_fleet_records
from assay.cli.workspace import Workspace
from assay.controller.orders.hold_end import format_hold_end
from assay.ledger.errors import LedgerError
from assay.model.errors import AssayError
from assay.model.text_lists import fold_names, format_list
from assay.model.timestamps import format_ago
from assay.views.burn_in_status import describe_burn_in_of_stay
from assay.views.node.node_status import list_current_lost_cordons, node_status_as_json
from assay.views.open_breakers import breaker_as_json, format_breaker

if TYPE_CHECKING:
    from datetime import datetime

    from rich.table import Table

    from assay.controller.cache.unknown_jobs import UnknownJobs
    from assay.lifecycle.decisions.held_answers import OpenBreaker
    from assay.lifecycle.node_state import NodeState
    from assay.lifecycle.rollouts.rollout_history import RolloutHistory

status_app = typer.Typer(add_completion=False)

PIPE_WIDTH = 160
"""Columns of the table when stdout is not a terminal."""


@status_app.command()
def status(
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
    server: Server = "",
    token_file: TokenFile = None,
    ca: ServerAuthority = None,
) -> None:
    """Show the state of every node: since when, what it waits for, who holds it, and why it is in this state.

    Then show the active rollout, a commit that was adopted without one because it cannot be compared, and the open
    circuit breakers: what they hold back, and how to clear them.

    If the ledger cannot be read, show the nodes of the inventory with unknown states.

    With --server, no fleet repository is needed: the server shows the nodes that you may see.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    if server:
        print_nodes(FleetServer(server, token_file, ca).list_nodes(), form)
        return
    workspace = Workspace(fleet.resolve())
    try:
        states, returned, rollouts = load_fleet_records(workspace)
    except LedgerError as error:
        from assay.cli.render.without_ledger import show_nodes_without_ledger

        show_nodes_without_ledger(workspace, error, form)
    if not states:
        from assay.fleet.repository_tree import require_inventory

        require_inventory(workspace.root)
    if form == "json":
        unknown = _read_unknown_jobs(workspace)
        nodes = [node_status_as_json(state, returned.get(state.node, ()), unknown.get(state.node)) for state in states]
        breakers = [breaker_as_json(one) for one in _list_open_breakers(states)]
        typer.echo(json.dumps({"nodes": nodes, "breakers": breakers, **_rollouts_as_json(rollouts)}, indent=1))
    elif states:
        _print_status(workspace, states, returned, rollouts)
    else:
        typer.echo(f"No node was observed yet{_describe_other_ledger(workspace)}. Run: assay reconcile --once")


def _describe_other_ledger(workspace: Workspace) -> str:
    """Return a note if ASSAY_LEDGER names another ledger than the fleet's own, since it may be mistyped."""
    location = workspace.ledger_location
    if location == (workspace.data_dir / "ledger.sqlite").absolute():
        return ""
    name = f": {location}" if isinstance(location, Path) else ""  # a URL may contain a password
    return f", according to the ledger that ASSAY_LEDGER names{name}"


def _rollouts_as_json(rollouts: RolloutHistory) -> dict[str, Any]:
    """Return the active rollout, and the adopted commit if it could not be compared; null where there is none."""
    active, uncompared = rollouts.find_active(), rollouts.find_uncompared()
    if not active and not uncompared:  # most fleets, most of the time: nothing more is imported
        return {"rollout": None, "uncompared": None}
    from assay.cli.render.rollout_progress import rollout_as_json, uncompared_as_json

    return {"rollout": active and rollout_as_json(active), "uncompared": uncompared and uncompared_as_json(uncompared)}


def describe_rollouts(rollouts: RolloutHistory, now: datetime) -> Iterator[str]:
    """Yield lines about the active rollout, and about an adopted commit that could not be compared."""
    active, uncompared = rollouts.find_active(), rollouts.find_uncompared()
    if not active and not uncompared:
        return
    from assay.cli.render.rollout_progress import format_rollout, format_uncompared

    if active:
        yield f"rollout {format_rollout(active, now)}\n  → assay rollout show {active.id[:8]}"
    if uncompared:
        yield f"commit {format_uncompared(uncompared, now)}"


def _print_status(
    workspace: Workspace,
    states: list[NodeState],
    returned: Mapping[str, Sequence[str]],
    rollouts: RolloutHistory,
) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    plain = _list_service_states(workspace) if console.is_terminal else None
    console.print(_make_table(states, returned, workspace.clock.now(), plain))
    counts = Counter(state.state for state in states)
    console.print("[dim]" + ", ".join(f"{count} {name}" for name, count in counts.most_common()) + "[/]")
    for line in describe_rollouts(rollouts, workspace.clock.now()):
        console.print(line, style="yellow", markup=False)
    for one in _list_open_breakers(states):
        console.print(format_breaker(one, workspace.clock.now()), style="yellow", markup=False)
    names = {state.node for state in states}
    for line in describe_unknown_jobs(_read_unknown_jobs(workspace), names, workspace.clock.now()):
        console.print(line, style="yellow", markup=False)


def _list_open_breakers(states: list[NodeState]) -> list[OpenBreaker]:
    """Return the open breakers. Most fleets have none, and need not load how they are found."""
    if not any(state.is_held_by_breaker for state in states):
        return []
    from assay.lifecycle.decisions.held_answers import list_open_breakers

    return list_open_breakers(states)


def _read_unknown_jobs(workspace: Workspace) -> Mapping[str, UnknownJobs]:
    from assay.controller.cache.unknown_jobs import read_unknown_jobs

    return read_unknown_jobs(workspace.data_dir)


def describe_unknown_jobs(unknown: Mapping[str, UnknownJobs], names: Collection[str], now: datetime) -> Iterator[str]:
    """Yield a line for each reason why the jobs of nodes are not known, for those of the nodes `names`."""
    by_reason: dict[str, list[str]] = {}
    for name, jobs in unknown.items():
        if name in names:
            by_reason.setdefault(jobs.reason, []).append(name)
    for reason, nodes in by_reason.items():
        since = format_ago(min(unknown[name].since for name in nodes), now)
        yield f"jobs unknown ({since}) on {format_list(fold_names(nodes), 4)}: {reason}"


def _list_service_states(workspace: Workspace) -> frozenset[str] | None:
    """Return the states in which customers use nodes, None where no policy can be read."""
    try:
        return workspace.fleet.policy.states_in_service
    except AssayError:
        return None


def _make_table(
    states: list[NodeState], returned: Mapping[str, Sequence[str]], now: datetime, plain: frozenset[str] | None
) -> Table:
    """Return the table of all nodes. States out of service are coloured: those that are not among `plain`."""
    from rich import box
    from rich.table import Table

    from assay.cli.render.markup import escape

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for title, wraps in (("node", False), ("pool", False), ("state", False), ("since", False), ("why", True)):
        table.add_column(title, no_wrap=not wraps, overflow="fold")
    for state in states:
        why = "\n".join(map(escape, [*_format_reasons(state, now), *returned.get(state.node, ())]))
        table.add_row(state.node, state.pool, _format_state(state, plain), format_ago(state.since, now), why)
    return table


def _format_state(state: NodeState, plain: frozenset[str] | None) -> str:
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
