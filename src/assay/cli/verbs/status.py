"""`assay status`: the state of every node, since when, and why."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from assay.cli.context_line import format_answer
from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, TokenFile, print_nodes
from assay.cli.options import WHICH, FleetDir, Nodes, Pools, Racks, States, TableFormat
from assay.cli.recorded_node_states import load_fleet_records
from assay.cli.verbs.node_filter import NodeFilter, require_no_racks
from assay.cli.workspace import Workspace
from assay.ledger.errors import LedgerError
from assay.model.clock import SystemClock
from assay.model.durations import parse_duration
from assay.model.errors import AssayError
from assay.model.text.csv_rows import format_csv
from assay.model.text.text_lists import fold_names, format_list
from assay.model.timestamps import format_ago
from assay.tell.views.node_status import node_status_as_json
from assay.tell.views.open_breakers import breaker_as_json, format_breaker
from assay.tell.views.trust_view import FleetTrust, build_fleet_trust, format_fleet_trust

if TYPE_CHECKING:
    from datetime import datetime

    from assay.act.loop.unknown_jobs import UnknownJobs
    from assay.cli.answers.status_answers import RolloutStatusPart, StatusAnswer
    from assay.decide.moves.held_answers import OpenBreaker
    from assay.decide.rollouts.rollout_history import RolloutHistory
    from assay.decide.state.node_state import NodeState

status_app = typer.Typer(add_completion=False)

CSV_COLUMNS = (
    *("node", "pool", "state", "since", "because", "pending.to", "pending.since", "pending.waiting_for"),
    *("held.who", "held.until", "held.reason", "asked.to", "asked.who", "asked.reason", "jobs_unknown.reason"),
)
LISTED = 100
"""Of more nodes than this, only those that need a look are listed, after a summary."""
WATCH_EVERY_S = 5.0
CLEARED_SCREEN = b"\x1b[H\x1b[2J"
"""What clears a terminal. It is written past the stream that escapes control characters."""


@status_app.command()
def status(
    fleet: FleetDir = Path(),
    form: TableFormat = "text",
    nodes: Nodes = None,
    pools: Pools = None,
    racks: Racks = None,
    states: States = None,
    since: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Only nodes that have come into their state within this time: 90m, 12h, 3d.",
            rich_help_panel=WHICH,
        ),
    ] = "",
    lists_all: Annotated[bool, typer.Option("--all", help="List every node, also of a large fleet.")] = False,
    watches: Annotated[bool, typer.Option("--watch", help="Show it again every five seconds, until Ctrl-C.")] = False,
    server: Server = "",
    token_file: TokenFile = None,
    ca: ServerAuthority = None,
) -> None:
    """Show the state of every node: since when, what it waits for, who holds it, and why it is in this state.

    Of more than a hundred nodes, first count them by pool and state, and then list those only that are out of service,
    wait, or are held. --all, or anything that selects nodes, lists the others too.

    Then show the active rollout, a commit that was adopted without one because it cannot be compared, and the open
    circuit breakers: what they hold back, and how to clear them. First comes how far automation may go, what it would
    have done where it only watches, and what waits for a person's yes.

    If the ledger cannot be read, show the nodes of the inventory with unknown states.

    With --server, no fleet repository is needed: the server shows the nodes that you may see.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read, or nothing has a name that was given.
    """
    span = parse_duration(since, "--since") if since else None
    wanted = NodeFilter(
        frozenset(nodes or ()), frozenset(pools or ()), frozenset(racks or ()), frozenset(states or ()), span
    )
    if watches and form != "text":
        raise AssayError("--watch shows text", fix=f"leave --format {form} out, or call it again and again")
    if server:
        require_no_racks(wanted)
        connection = FleetServer(server, token_file, ca)
        show = partial(_show_server, connection, wanted, form)
    else:
        show = partial(_show_fleet, fleet.resolve(), wanted, form, lists_all=lists_all)
    if watches:
        _watch(show)
    else:
        show()


def _watch(show: Callable[[], None]) -> None:
    """Show it again and again with the time, on a cleared screen if there is one, until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        while True:
            if sys.stdout.isatty():
                sys.stdout.buffer.write(CLEARED_SCREEN)
            typer.echo(f"{SystemClock().now():%Y-%m-%d %H:%M:%S} UTC")
            show()
            time.sleep(WATCH_EVERY_S)


def _show_server(connection: FleetServer, wanted: NodeFilter, form: str) -> None:
    now = SystemClock().now()
    rows = [
        row
        for row in connection.list_nodes()
        if wanted.keeps(row["node"], row["pool"], "", row["state"], row["since"], now)
    ]
    print_nodes(rows, form)


def _show_fleet(root: Path, wanted: NodeFilter, form: str, *, lists_all: bool) -> None:
    workspace = Workspace(root)
    try:
        recorded, returned, rollouts = load_fleet_records(workspace)
    except LedgerError as error:
        from assay.cli.without_ledger import show_nodes_without_ledger

        show_nodes_without_ledger(workspace, error, form)
    if not recorded:
        from assay.declare.repository.repository_tree import require_inventory

        require_inventory(workspace.root)
    shown = wanted.select(workspace, recorded)
    if form != "text":
        unknown = _read_unknown_jobs(workspace)
        nodes = [node_status_as_json(state, returned.get(state.node, ()), unknown.get(state.node)) for state in shown]
    if form == "csv":
        typer.echo("\n".join(format_csv(CSV_COLUMNS, nodes)))
    elif form == "json":
        breakers = [breaker_as_json(one) for one in _list_open_breakers(recorded)]
        answer: StatusAnswer = {
            "nodes": nodes,
            "breakers": breakers,
            **_rollouts_as_json(rollouts),
            "trust": _read_trust(workspace, recorded),
        }
        typer.echo(format_answer(answer, indent=1, default=asdict))
    elif not recorded:
        typer.echo(f"No node was observed yet{_describe_other_ledger(workspace)}. Run: assay reconcile --once")
    elif not shown:
        typer.echo("No node is as asked for.")
    else:
        is_summary = wanted.is_empty and not lists_all and len(shown) > LISTED
        _print_status(workspace, FleetStatus(recorded, shown, returned, rollouts), is_summary=is_summary)


class FleetStatus(NamedTuple):
    """What is printed: all recorded nodes, those to show, notes on returned parts by node, and the rollouts."""

    recorded: list[NodeState]
    shown: list[NodeState]
    returned: Mapping[str, Sequence[str]]
    rollouts: RolloutHistory


def _describe_other_ledger(workspace: Workspace) -> str:
    """Return a note if ASSAY_LEDGER names another ledger than the fleet's own, since it may be mistyped."""
    location = workspace.ledger_location
    if location == (workspace.data_dir / "ledger.sqlite").absolute():
        return ""
    name = f": {location}" if isinstance(location, Path) else ""  # a URL may contain a password
    return f", according to the ledger that ASSAY_LEDGER names{name}"


def _rollouts_as_json(rollouts: RolloutHistory) -> RolloutStatusPart:
    """Return the active rollout, and the adopted commit if it could not be compared; null where there is none."""
    active, uncompared = rollouts.find_active(), rollouts.find_uncompared()
    if not active and not uncompared:  # most fleets, most of the time: nothing more is imported
        return {"rollout": None, "uncompared": None}
    from assay.cli.verbs.rollout_progress import uncompared_as_json
    from assay.tell.views.rollouts import summarize_rollout

    return {
        "rollout": summarize_rollout(active) if active else None,
        "uncompared": uncompared_as_json(uncompared) if uncompared else None,
    }


def describe_rollouts(rollouts: RolloutHistory, now: datetime) -> Iterator[str]:
    """Yield lines about the active rollout, and about an adopted commit that could not be compared."""
    active, uncompared = rollouts.find_active(), rollouts.find_uncompared()
    if not active and not uncompared:
        return
    from assay.cli.verbs.rollout_progress import format_rollout, format_uncompared

    if active:
        yield f"rollout {format_rollout(active, now)}\n  → assay rollout show {active.id[:8]}"
    if uncompared:
        yield f"commit {format_uncompared(uncompared, now)}"


def _print_status(workspace: Workspace, fleet: FleetStatus, *, is_summary: bool) -> None:
    from rich.console import Console

    from assay.cli.verbs.status_table import PIPE_WIDTH, make_counts_table, make_table, needs_a_look

    console, now = Console(highlight=False), workspace.clock.now()
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    in_service = _list_service_states(workspace) if is_summary or console.is_terminal else None
    listed = fleet.shown
    if is_summary:
        console.print(make_counts_table(fleet.shown))
        listed = [state for state in fleet.shown if needs_a_look(state, in_service)]
    for line in format_fleet_trust(trust) if (trust := _read_trust(workspace, fleet.recorded)) else ():
        console.print(line, style="dim" if line.startswith("trust") else "yellow", markup=False)
    if listed:
        console.print(make_table(listed[:LISTED] if is_summary else listed, fleet.returned, now, in_service))
    counts = Counter(state.state for state in fleet.shown)
    console.print("[dim]" + ", ".join(f"{count:,} {name}" for name, count in counts.most_common()) + "[/]")
    if is_summary:
        more = f"{len(listed) - LISTED:,} more need a look; " if len(listed) > LISTED else ""
        rest = len(fleet.shown) - len(listed)
        console.print(
            f"[dim]{more}{rest:,} in service are not listed: --all, or --pool, --rack, --node, --state, --since[/]"
        )
    for line in describe_rollouts(fleet.rollouts, now):
        console.print(line, style="yellow", markup=False)
    for one in _list_open_breakers(fleet.recorded):
        console.print(format_breaker(one, now), style="yellow", markup=False)
    names = {state.node for state in fleet.shown}
    for line in describe_unknown_jobs(_read_unknown_jobs(workspace), names, now):
        console.print(line, style="yellow", markup=False)


def _read_trust(workspace: Workspace, states: list[NodeState]) -> FleetTrust | None:
    """Return how far automation may go, None where no inventory and policy can be read."""
    try:
        return build_fleet_trust(workspace, states)
    except AssayError:
        return None


def _list_open_breakers(states: list[NodeState]) -> list[OpenBreaker]:
    """Return the open breakers. Most fleets have none, and need not load how they are found."""
    if not any(state.is_held_by_breaker for state in states):
        return []
    from assay.decide.moves.held_answers import list_open_breakers

    return list_open_breakers(states)


def _read_unknown_jobs(workspace: Workspace) -> Mapping[str, UnknownJobs]:
    from assay.act.loop.unknown_jobs import read_unknown_jobs

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
