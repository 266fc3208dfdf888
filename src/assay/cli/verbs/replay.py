"""`assay replay --policy FILE`: what a policy would have done with a history of faults, and its costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from assay.cli.context_line import print_answer
from assay.cli.options import OptionalFleetDir, OutputFormat, option
from assay.cli.workspace import Workspace, load_surrounding_fleet
from assay.decide.replay.history import format_elapsed
from assay.model.errors import AssayError
from assay.model.facts import to_json
from assay.model.timestamps import format_duration

if TYPE_CHECKING:
    from assay.decide.replay.history import FaultHistory
    from assay.decide.replay.replay_nodes import ReplayRules
    from assay.decide.replay.result import ReplayResult
    from assay.model.fleet import Fleet
    from assay.model.node import Node


MAX_MOVES_SHOWN = 40
REPLAYED = timedelta(days=30)
"""How far back the ledger is read."""
COST_TITLES = {
    "out_node_hours": "node-hours out of service",
    "cordoned_idle_node_hours": "node-hours cordoned while idle",
    "catastrophic_node_hours": "node-hours served with an open catastrophic fault",
    "degraded_node_hours": "node-hours served with an open degraded fault",
    "tickets": "tickets",
}


def replay(
    policy: Annotated[Path, option("--policy FILE", "The policy to try.", show_default=False)],
    events: Annotated[
        Path | None,
        option(
            "--events FILE",
            "The history: one JSON object per line. Default: the last 30 days of the ledger.",
            show_default=False,
        ),
    ] = None,
    fleet: OptionalFleetDir = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Replay a history of faults under a policy: its decisions, and what they cost in time and tickets.

    Exit codes: 0 replayed; 2 the policy or the history cannot be read.
    """
    from assay.decide.replay.result import make_replay_answer

    surrounding, nodes = load_surrounding_fleet(fleet)
    history = _read_history_file(events) if events else _read_ledger(fleet or Path())
    inputs = ReplayInputs(surrounding, nodes, history)
    rules = inputs.load_rules(policy)
    result = inputs.run(rules)
    answer = make_replay_answer(inputs.history, rules, result)
    print_answer(answer, format, format_replay_text(to_json(answer)))


@dataclass(frozen=True)
class ReplayInputs:
    """Everything but the policy."""

    fleet: Fleet
    nodes: dict[str, Node]
    history: FaultHistory

    def load_rules(self, policy: Path) -> ReplayRules:
        """Return the rules of a policy file. Raises AssayError if it cannot be read."""
        from assay.decide.replay.replay_nodes import ReplayDurations, ReplayRules
        from assay.declare.spec_reader import read_spec_file
        from assay.model.specs.lifecycle_policy import LifecyclePolicy

        spec, read = read_spec_file(policy, self.fleet.root, LifecyclePolicy)
        lines = {(read.key, path): line for path, line in read.lines.items()}
        catalog, profiles = self.fleet.fault_catalog, self.fleet.profiles
        return ReplayRules(spec, catalog, profiles, ReplayDurations(), lines)

    def run(self, rules: ReplayRules) -> ReplayResult:
        """Replay the history under the policy of the rules."""
        from assay.decide.replay.replay_nodes import collect_replay_nodes
        from assay.decide.replay.simulator import run_replay

        cast = collect_replay_nodes(self.nodes, self.history.events, rules)
        return run_replay(rules, cast, self.history.events)


def _read_ledger(root: Path) -> FaultHistory:
    """Return the faults that the fleet's own ledger has of the last days."""
    from assay.decide.replay.history import FaultHistory, list_fault_events

    workspace = Workspace(root.resolve())
    known = [node for node in workspace.fleet.nodes.values() if node.profile in workspace.fleet.profiles]
    now = workspace.clock.now()
    events = list_fault_events(workspace.read_node_states(), known, now - REPLAYED, now)
    if not events:
        fix = "give a history of your own: --events FILE"
        raise AssayError(f"the ledger has no fault of the last {REPLAYED.days} days", fix=fix)
    return FaultHistory(events)


def _read_history_file(file: Path) -> FaultHistory:
    from assay.decide.replay.history import read_history

    try:
        with file.open("rb") as lines:
            return read_history(lines, str(file))
    except OSError as error:
        fix = "name a file of events"
        raise AssayError(f"cannot be read: {error.strerror}", where=str(file), fix=fix) from None


def format_replay_text(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for a `ReplayAnswer` as JSON."""
    yield from _format_moves([decision for decision in document["decisions"] if decision["timing"] != "record"])
    records = Counter(decision["remedy"] for decision in document["decisions"] if decision["timing"] == "record")
    if records:
        yield f"recorded: {_format_counts(records)}"
    for trip in document["breaker_trips"]:
        held = f"{len(trip['nodes'])} nodes held"
        yield f"{_format_time(trip['time'])}  breaker of pool {trip['pool']}: {trip['because']}; {held}"
    yield ""
    period = f"{_format_time(document['from'])} to {_format_time(document['until'])}"
    yield f"policy {document['policy']}, {document['events']:,} events, {period}"
    yield from _format_totals(document)
    if document["unknown_faults"]:
        yield f"not in the fault catalogue: {', '.join(document['unknown_faults'])}"
    if document["unread_fields"]:
        yield f"unused fields of events: {', '.join(document['unread_fields'])}"


def _format_moves(moves: list[Mapping[str, Any]]) -> Iterator[str]:
    for move in moves[:MAX_MOVES_SHOWN]:
        when = "when idle" if move["timing"] == "pending" else "at once"
        states = f"{move['from']} → {move['to']}"
        yield f"{_format_time(move['time'])}  {move['node']}: {states}, {when}  ({move['because']})"
    if len(moves) > MAX_MOVES_SHOWN:
        yield f"… and {len(moves) - MAX_MOVES_SHOWN:,} more moves; --format json has all of them"


def _format_totals(document: Mapping[str, Any]) -> Iterator[str]:
    totals = document["totals"]
    longest = sorted(document["nodes"].items(), key=lambda item: (-item[1], item[0]))[:5]
    nodes = ", ".join(f"{name} {_format_seconds(seconds)}" for name, seconds in longest if seconds)
    most = f"; the most: {nodes}" if nodes else ""
    yield f"out of service: {_format_seconds(totals['seconds_out'])} of node time{most}"
    yield f"actions: {_format_counts(totals['actions'])}; tickets: {totals['tickets']}"
    hours = document["node_hours"]
    yield f"costs, of {_format_number(hours['all'])} node-hours in all:"
    left = max(map(len, COST_TITLES.values()))
    for name, title in COST_TITLES.items():
        yield f"  {title:{left}}  {_format_number(document['costs'][name]):>10}"
    yield _format_closed(hours)


def _format_closed(hours: dict[str, float]) -> str:
    parts = hours["out"], hours["cordoned_idle"], hours["cordoned_in_use"]
    out, idle, used = map(_format_number, parts)
    shares = f"{out} out of service, {idle} cordoned while idle, {used} cordoned while a job still ran"
    return f"closed to new jobs for {_format_number(sum(parts))} node-hours: {shares}"


def _format_number(value: float) -> str:
    """Return a cost for people: whole from 100 on, else with one decimal."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"


def _format_time(at: float | str) -> str:
    """Return a time as the history counts: seconds as days and a time of day."""
    return at if isinstance(at, str) else format_elapsed(at)


def _format_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _format_seconds(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds))
