"""`assay status`: the state of every node, since when, and why; of all nodes, or of those that options name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from assay.act.loop.projections import read_unknown_jobs
from assay.act.orders.orders import format_hold_end
from assay.cli.context_line import format_answer
from assay.cli.fleet_server import FleetServer, Server, ServerAuthority, TokenFile, print_nodes
from assay.cli.options import WHICH, FleetDir, Nodes, Pools, Racks, States, TableFormat, option
from assay.cli.output import escape, make_table, open_console
from assay.cli.verbs.breaker import format_breaker
from assay.cli.workspace import Workspace, load_fleet_records, pick_node_state, require_known
from assay.decide.state.node_state import NodeState
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.facts import fact, inline
from assay.model.text.csv_rows import format_csv
from assay.model.text.lists import fold_names, format_list
from assay.model.timestamps import format_ago, parse_duration, parse_time
from assay.tell.views.burn_in_status import describe_burn_in_of_stay
from assay.tell.views.incident_story import NO_STORY, NodeStory, read_stories
from assay.tell.views.node_status import (
    describe_disagreement,
    describe_reading,
    describe_unread,
    list_current_lost_cordons,
    make_node_status,
)
from assay.tell.views.trust_view import FleetTrust, build_fleet_trust, format_fleet_trust

if TYPE_CHECKING:
    from assay.act.loop.projections import UnknownJobs
    from assay.cli.verbs.rollout import UncomparedCommit
    from assay.decide.moves.held_answers import OpenBreaker
    from assay.decide.rollouts.rollout_history import RolloutHistory
    from assay.tell.views.node_status import NodeStatus
    from assay.tell.views.node_sync import RolloutSummary
    from assay.tell.views.pool_delivery import PoolDelivery


CSV_COLUMNS = (
    *("node", "pool", "state", "since", "because", "pending.to", "pending.since", "pending.blockers"),
    *("held.who", "held.until", "held.reason", "asked.to", "asked.who", "asked.reason", "jobs_unknown.reason"),
    *("unread_since", "read_at", "incident", "next.who", "next.task", "next.ticket"),
)
INCIDENTS_SHOWN = 2
PIPE_WIDTH = 4000
"""Columns of a table that is not printed to a terminal: a program reads a node by its line."""
LISTED = 100
"""Of more nodes than this, only those that need a look are listed, after a summary."""


@fact
class RolloutStatusPart:
    """What of the rollouts belongs to the state of the fleet."""

    rollout: RolloutSummary | None
    """The active rollout; null if there is none."""
    uncompared: UncomparedCommit | None
    """The commit that was adopted last, if it could not be compared with the one before; else null."""


@fact
class StatusAnswer:
    """The state of each node that was asked for, the active rollout and the open circuit breakers."""

    nodes: list[NodeStatus]
    """The nodes that were asked for, by pool and name."""
    breakers: list[OpenBreaker]
    """The circuit breakers that hold nodes back, of the whole fleet."""
    pools: list[PoolDelivery]
    """What pools deliver of what they declare, with their last swaps."""
    rollouts: RolloutStatusPart = inline()
    trust: FleetTrust | None
    """How far automation may go; null without an inventory and one policy."""


def list_counts(
    states: Iterable[NodeState], unread: Mapping[str, str], now: datetime
) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each pool, with the number of its nodes in each state."""
    by_pool: dict[str, list[NodeState]] = defaultdict(list)
    for state in states:
        by_pool[state.pool].append(state)
    for pool, members in sorted(by_pool.items()):
        yield escape(pool), f"{len(members):,}", format_counts(members, unread, now)


def format_counts(states: Iterable[NodeState], unread: Mapping[str, str], now: datetime) -> str:
    """Return how many nodes are in each state, the most common first, and how many are not known, and since when."""
    shown = list(states)
    counts = Counter(state.state for state in shown if state.node not in unread)
    doubtful = describe_unread([unread[state.node] for state in shown if state.node in unread], now)
    return ", ".join(filter(None, [*(f"{count:,} {name}" for name, count in counts.most_common()), doubtful]))


def list_rows(
    states: list[NodeState],
    notes: Mapping[str, Sequence[str]],
    stories: Mapping[str, NodeStory],
    readings: Mapping[str, str],
    now: datetime,
    plain: Collection[str] | None,
) -> Iterator[Sequence[str]]:
    """Yield one row for each node. States out of service are coloured: those that are not among `plain`.

    `readings`: how old what is known of a node is.
    """
    for state in states:
        story = stories.get(state.node, NO_STORY)
        words = [*notes.get(state.node, ()), *_format_reasons(state, story, now)]
        words += [readings[state.node]] if state.node in readings else []
        yield (
            state.node,
            state.pool,
            _format_state(state, plain),
            format_ago(state.since, now),
            escape("; ".join(words)),
        )


def _format_state(state: NodeState, plain: Collection[str] | None) -> str:
    if state.pending and state.pending.to == state.state:
        return f"[yellow]{state.state}, cordoned[/]"
    if state.pending:
        return f"[yellow]{state.state} → {state.pending.to}[/]"
    return state.state if plain is None or state.state in plain else f"[cyan]{state.state}[/]"


def _format_reasons(state: NodeState, story: NodeStory, now: datetime) -> list[str]:
    """Return what is wrong with a node and who acts next; without an incident, why it is in its state."""
    lines = []
    if hold := state.hold:
        until = f" {format_hold_end(hold.until, now)}" if hold.until else ""
        lines.append(f"held by {hold.who}, {format_ago(hold.at, now)}{until}: {hold.reason}")
    if request := state.move_request:
        lines.append(f"{request.who} asked for {request.to}, {format_ago(request.at, now)}: {request.reason}")
    lines += [f"{each.happened}, {format_ago(each.since, now)}" for each in story.incidents[:INCIDENTS_SHOWN]]
    if len(story.incidents) > INCIDENTS_SHOWN:
        lines.append(f"and {len(story.incidents) - INCIDENTS_SHOWN} more incidents")
    if (step := story.next).who and not hold:
        lines.append(f"→ {step.line}")
    if burning := describe_burn_in_of_stay(state):
        lines.append(burning)
    lines += [f"{format_ago(lost.at, now)}: {lost.reason}" for lost in list_current_lost_cordons(state)[-1:]]
    lines += describe_disagreement(state)
    return list(dict.fromkeys([*lines, *([] if story.incidents else [state.note or state.reason])]))


@dataclass(frozen=True)
class NodeFilter:
    """What a node must meet to be shown: one of each list that is not empty, and a state that is at most so old."""

    nodes: frozenset[str] = frozenset()
    pools: frozenset[str] = frozenset()
    racks: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    since: timedelta | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every node is shown."""
        return not (self.nodes or self.pools or self.racks or self.states or self.since)

    def select(self, workspace: Workspace, recorded: Sequence[NodeState]) -> list[NodeState]:
        """Return the recorded nodes to show. Raises AssayError for a name that nothing has."""
        if self.is_empty:
            return list(recorded)
        self._require_known(workspace, recorded)
        racks = {node.name: node.rack for node in workspace.fleet.nodes.values()} if self.racks else {}
        now = workspace.clock.now()
        return [
            state
            for state in recorded
            if self.keeps(state.node, state.pool, racks.get(state.node, ""), state.state, state.since, now)
        ]

    def keeps(self, node: str, pool: str, rack: str, state: str, since: str, now: datetime) -> bool:
        """Return whether a node is shown that has been in a state since a time (ISO 8601)."""
        pairs = ((self.nodes, node), (self.pools, pool), (self.racks, rack), (self.states, state))
        if any(wanted and name not in wanted for wanted, name in pairs):
            return False
        return self.since is None or now - parse_time(since) <= self.since

    def _require_known(self, workspace: Workspace, recorded: Sequence[NodeState]) -> None:
        for name in sorted(self.nodes - {state.node for state in recorded}):
            pick_node_state(workspace, recorded, name)
        require_known(sorted(self.pools), sorted({state.pool for state in recorded}), "pool")
        if self.racks:
            require_known(sorted(self.racks), sorted({node.rack for node in workspace.fleet.nodes.values()}), "rack")
        unused = self.states - {state.state for state in recorded}
        if unused:
            require_known(sorted(unused), workspace.fleet.policy.states, "state")


def status(
    fleet: FleetDir = Path(),
    form: TableFormat = "text",
    nodes: Nodes = None,
    pools: Pools = None,
    racks: Racks = None,
    states: States = None,
    since: Annotated[
        str,
        option(
            "--since DURATION",
            "Only nodes that have come into their state within this time: 90m, 12h, 3d.",
            group=WHICH,
        ),
    ] = "",
    lists_all: Annotated[bool, option("--all", "List every node, also of a large fleet.")] = False,
    server: Server = "",
    token_file: TokenFile = None,
    ca: ServerAuthority = None,
) -> None:
    """Show the state of every node: since when, what it waits for, who holds it, and why it is in this state.

    A node in service that nothing has read for longer than the policy's `silence` allows, or whose agent and BMC are
    both silent for so long, is not known, whatever its state. The row of a node that is not well says what broke, since
    when, who acts next, and how old its reading is. Of more than a hundred nodes, first count them by pool and state,
    and then list those only that are out of service, not known, have an incident, wait, or are held. --all, or anything
    that selects nodes, lists the others.

    Then show the active rollout, a commit that was adopted without one because it cannot be compared, and the open
    circuit breakers: what they hold back, and how to clear them. First comes how far automation may go, what it would
    have done where it only watches, and what waits for a person's yes.

    With --server, no fleet repository is needed: the server shows the nodes that you may see.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read, or nothing has a name that was given.
    """
    span = parse_duration(since, "--since") if since else None
    wanted = NodeFilter(
        frozenset(nodes or ()), frozenset(pools or ()), frozenset(racks or ()), frozenset(states or ()), span
    )
    if server:
        if wanted.racks:
            raise AssayError("a server does not tell the racks of its nodes", fix="name nodes, pools or states instead")
        _show_server(FleetServer(server, token_file, ca), wanted, form)
    else:
        _show_fleet(fleet.resolve(), wanted, form, lists_all=lists_all)


def _show_server(connection: FleetServer, wanted: NodeFilter, form: str) -> None:
    now = SystemClock().now()
    rows = [
        row
        for row in connection.list_nodes()
        if wanted.keeps(row["node"], row["pool"], "", row["state"], row["since"], now)
    ]
    print_nodes(rows, form)


def _show_fleet(root: Path, wanted: NodeFilter, form: str, *, lists_all: bool) -> None:
    from assay.act.ingest.silent_nodes import read_reading_times

    workspace = Workspace(root)
    recorded, returned, rollouts = load_fleet_records(workspace)
    shown = wanted.select(workspace, recorded)
    if form != "text":
        stories, unknown = _read_stories(workspace, shown), read_unknown_jobs(workspace.data_dir)
        read_at = read_reading_times(workspace.data_dir, shown)
        nodes = [
            make_node_status(
                state,
                returned.get(state.node, ()),
                unknown.get(state.node),
                stories.get(state.node, NO_STORY),
                read_at.get(state.node, ""),
            )
            for state in shown
        ]
    if form == "csv":
        typer.echo("\n".join(format_csv(CSV_COLUMNS, nodes)))
    elif form == "json":
        breakers, pools = _list_open_breakers(recorded), _list_deliveries(workspace, recorded)
        answer = StatusAnswer(nodes, breakers, pools, _show_rollouts(rollouts), _read_trust(workspace, recorded))
        typer.echo(format_answer(answer, indent=1))
    elif not recorded:
        typer.echo(f"No node was observed yet{_describe_other_ledger(workspace)}. Run: assay reconcile --once")
    elif not shown:
        typer.echo("No node is as asked for.")
    else:
        is_summary = wanted.is_empty and not lists_all and len(shown) > LISTED
        _print_status(workspace, FleetStatus(recorded, shown, returned, rollouts), is_summary=is_summary)
        workspace.print_page(form, "")
    if recorded:
        _ = workspace.fleet.policy  # rows without it say nothing of freshness: whoever reads them must learn why


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


def _show_rollouts(rollouts: RolloutHistory) -> RolloutStatusPart:
    """Return the active rollout, and the adopted commit if it could not be compared; null where there is none."""
    active, uncompared = rollouts.find_active(), rollouts.find_uncompared()
    if not active and not uncompared:  # most fleets, most of the time: nothing more is imported
        return RolloutStatusPart(rollout=None, uncompared=None)
    from assay.cli.verbs.rollout import make_uncompared_commit
    from assay.tell.views.node_sync import summarize_rollout

    return RolloutStatusPart(
        rollout=summarize_rollout(active) if active else None,
        uncompared=make_uncompared_commit(uncompared) if uncompared else None,
    )


def describe_rollouts(rollouts: RolloutHistory, now: datetime) -> Iterator[str]:
    """Yield lines about the active rollout, and about an adopted commit that could not be compared."""
    active, uncompared = rollouts.find_active(), rollouts.find_uncompared()
    if not active and not uncompared:
        return
    from assay.cli.verbs.rollout import format_rollout, format_uncompared

    if active:
        yield f"rollout {format_rollout(active, now)}\n  → assay rollout show {active.id[:8]}"
    if uncompared:
        yield f"commit {format_uncompared(uncompared, now)}"


def _print_status(workspace: Workspace, fleet: FleetStatus, *, is_summary: bool) -> None:
    from assay.act.ingest.silent_nodes import read_reading_times

    console, now = open_console(PIPE_WIDTH), workspace.clock.now()
    in_service = _list_service_states(workspace) if is_summary or console.is_terminal else None
    listed, stories = fleet.shown, _read_stories(workspace, fleet.shown)
    unread = {node: story.unread_since for node, story in stories.items() if story.unread_since is not None}
    if is_summary:
        counts = list_counts(fleet.shown, unread, now)
        console.print(make_table(("pool", "nodes", "in which states"), counts, console.width))
        listed = [state for state in listed if in_service is None or state.node in stories]
    for line in format_fleet_trust(trust) if (trust := _read_trust(workspace, fleet.recorded)) else ():
        console.print(line, style="dim" if line.startswith("trust") else "yellow", markup=False)
    printed = listed[:LISTED] if is_summary else listed
    if printed:
        read_at = read_reading_times(workspace.data_dir, printed)
        readings = {
            state.node: describe_reading(read_at.get(state.node, ""), unread.get(state.node), now)
            for state in printed
            if state.node in unread or state.node in stories
        }
        rows = list_rows(printed, fleet.returned, stories, readings, now, in_service)
        console.print(make_table(("node", "pool", "state", "since", "why"), rows, console.width))
    console.print(f"[dim]{escape(format_counts(fleet.shown, unread, now))}[/]")
    if is_summary:
        more = f"{len(listed) - LISTED:,} more need a look; " if len(listed) > LISTED else ""
        rest = len(fleet.shown) - len(listed)
        console.print(
            f"[dim]{more}{rest:,} in service are not listed: --all, or --pool, --rack, --node, --state, --since[/]"
        )
    deliveries = [each.describe() for each in _list_deliveries(workspace, fleet.recorded)]
    for line in (*deliveries, *describe_rollouts(fleet.rollouts, now)):
        console.print(line, style="yellow", markup=False)
    for breaker in _list_open_breakers(fleet.recorded):
        console.print(format_breaker(breaker, now), style="yellow", markup=False)
    names = {state.node for state in fleet.shown}
    for line in describe_unknown_jobs(read_unknown_jobs(workspace.data_dir), names, now):
        console.print(line, style="yellow", markup=False)


def _read_stories(workspace: Workspace, states: list[NodeState]) -> Mapping[str, NodeStory]:
    """Return what is wrong with nodes; nothing where no inventory and policy can be read."""
    return read_stories(workspace, states) if _list_service_states(workspace) is not None else {}


def _read_trust(workspace: Workspace, states: list[NodeState]) -> FleetTrust | None:
    """Return how far automation may go, None where no inventory and policy can be read."""
    try:
        return build_fleet_trust(workspace, states)
    except AssayError:
        return None


def _list_open_breakers(states: list[NodeState]) -> list[OpenBreaker]:
    """Return the open breakers. Most fleets have none, and need not load how they are found."""
    if not any(state.is_held_by_breaker or state.open_series for state in states):
        return []
    from assay.decide.moves.held_answers import list_open_breakers

    return list_open_breakers(states)


def _list_deliveries(workspace: Workspace, states: list[NodeState]) -> list[PoolDelivery]:
    """Return what pools deliver that declare it; nothing where no inventory and policy can be read."""
    if _list_service_states(workspace) is None or not workspace.fleet.capacities:
        return []
    from assay.tell.views.pool_delivery import list_pool_deliveries

    return list_pool_deliveries(workspace, states)


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
