"""`assay replay --policy FILE --events FILE`: what a policy would have done with a history of faults.

`assay policy graph`: the states of a policy, drawn.

A replay's answer for people: what moved, what it cost, and how the other policy differs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from assay.cli.workspace import OutputFormat
from assay.model.errors import AssayError
from assay.model.timestamps import format_duration

if TYPE_CHECKING:
    from assay.model.specs.lifecycle_policy import LifecyclePolicy

policy_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Draw policies.")
PolicyFleetOption = Annotated[Path, typer.Option("--fleet", help="The fleet repository.", envvar="ASSAY_FLEET")]


@policy_app.callback()
def _policy() -> None:
    """Draw policies."""


@policy_app.command()
def graph(
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="The policy; without it the fleet's.")] = None,
    fleet: PolicyFleetOption = Path(),
    format_: Annotated[
        Literal["svg", "mermaid"], typer.Option("--format", help="svg for people, mermaid for a page of Markdown.")
    ] = "svg",
) -> None:
    """Draw the states of a policy and what leads from one to the other, on stdout.

    Exit code 0: drawn; 2: there is no such policy, or it cannot be read.
    """
    from assay.lifecycle.policy_graph import format_mermaid
    from assay.lifecycle.policy_graph_svg import draw_policy_svg

    chosen = _read_policy(policy, fleet)
    typer.echo(draw_policy_svg(chosen).rstrip() if format_ == "svg" else format_mermaid(chosen))


def _read_policy(file: Path | None, fleet: Path) -> LifecyclePolicy:
    """Return the policy of that file, else the fleet's one. Raises Trouble."""
    from assay.fleet.fleet_loader import load_fleet
    from assay.fleet.policy_file import read_policy

    if file is not None:
        return read_policy(file, fleet).policy
    policies = load_fleet(fleet).policies
    if len(policies) != 1:
        raise AssayError(
            f"the fleet has {len(policies)} policies",
            where=str(fleet / "specs"),
            fix="name the file of one: assay policy graph --policy FILE",
        )
    return next(iter(policies.values()))


if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.node import Node
    from assay.trends.replay.assumed_durations import ReplayDurations
    from assay.trends.replay.fault_history import FaultHistory
    from assay.trends.replay.replay_result import ReplayResult
    from assay.trends.replay.replay_setup import ReplayRules

replay_app = typer.Typer(add_completion=False)
ReplayFleetOption = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        help="The fleet repository; without one the one here, else no nodes and the faults that assay knows.",
        envvar="ASSAY_FLEET",
    ),
]


@replay_app.command()
def replay(
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy to play.")],
    events: Annotated[Path, typer.Option(metavar="FILE", help="The history, one JSON object a line.")],
    against: Annotated[Path | None, typer.Option(metavar="FILE", help="Another policy, to compare with.")] = None,
    fleet: ReplayFleetOption = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Play a history of faults under a policy: what it decides, and what that costs.

    Exit code 0: answered; 2: the policy or the history cannot be read.
    """
    from assay.trends.replay.replay_result import format_replay_result

    around, listed = load_surrounding_fleet(fleet)
    history = _read_events(events)
    rules = _load_rules(policy, around)
    played = _run_replay(rules, listed, history)
    other = _run_replay(_load_rules(against, around), listed, history) if against else None
    document = format_replay_result(history, rules, played, other)
    typer.echo(
        json.dumps(document, indent=1, ensure_ascii=False)
        if format == "json"
        else "\n".join(format_replay_text(document))
    )


def load_surrounding_fleet(fleet: Path | None) -> tuple[Fleet, dict[str, Node]]:
    """Return the fleet named, or the one here, with its nodes; else the specs that assay brings, and no nodes."""
    from assay.fleet.fleet_loader import load_fleet
    from assay.starter.new_repository import find_example

    root = fleet if fleet is not None else Path()
    if (root / "specs" / "faults").is_dir():
        found = load_fleet(root)
        return found, dict(found.nodes)
    if fleet is not None:
        raise AssayError("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    return load_fleet(find_example()), {}


def _read_events(file: Path) -> FaultHistory:
    from assay.trends.replay.fault_history import read_history

    try:
        with file.open("rb") as lines:
            return read_history(lines, str(file))
    except OSError as error:
        raise AssayError(f"cannot be read: {error.strerror}", where=str(file), fix="name a file of events") from None


def _load_rules(policy: Path, around: Fleet) -> ReplayRules:
    from assay.fleet.policy_file import read_policy
    from assay.trends.replay.replay_setup import ReplayRules

    read = read_policy(policy, around.root)
    return ReplayRules(read.policy, around.fault_catalog, around.profiles, _assumed_durations(), read.lines)


def _assumed_durations() -> ReplayDurations:
    from assay.plan.assumptions import ACTION_HOURS, PERSON_HOURS, SUITE_HOURS
    from assay.trends.replay.assumed_durations import AssumedDuration, ReplayDurations

    actions = {name: AssumedDuration(one.hours, one.source) for name, one in ACTION_HOURS.items()}
    return ReplayDurations(
        actions,
        AssumedDuration(SUITE_HOURS.hours, SUITE_HOURS.source),
        AssumedDuration(PERSON_HOURS.hours, PERSON_HOURS.source),
    )


def _run_replay(rules: ReplayRules, listed: dict[str, Node], history: FaultHistory) -> ReplayResult:
    from assay.trends.replay.replay_setup import collect_replay_nodes
    from assay.trends.replay.simulator import run_replay

    return run_replay(rules, collect_replay_nodes(listed, history.events, rules), history.events)


MAX_MOVES_SHOWN = 40


def format_replay_text(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an answer."""
    moves = [one for one in document["decisions"] if one["timing"] != "record"]
    yield from _decisions(moves)
    records = Counter(one["remedy"] for one in document["decisions"] if one["timing"] == "record")
    if records:
        yield f"recorded: {_counts(records)}"
    for trip in document["breaker_trips"]:
        yield f"{trip['time']}  breaker of pool {trip['pool']}: {trip['because']}; {len(trip['nodes'])} nodes held"
    yield ""
    yield f"policy {document['policy']}, {document['events']:,} events, {document['from']} to {document['until']}"
    yield from _totals(document)
    if document["unknown_faults"]:
        yield f"no catalogue knows: {', '.join(document['unknown_faults'])}"
    if document["unread_fields"]:
        yield f"fields of events that nobody reads: {', '.join(document['unread_fields'])}"
    if "against" in document:
        yield from _difference(document["against"])


def _decisions(moves: list[dict[str, Any]]) -> Iterator[str]:
    for one in moves[:MAX_MOVES_SHOWN]:
        when = "when idle" if one["timing"] == "pending" else "at once"
        yield f"{one['time']}  {one['node']}: {one['from']} → {one['to']}, {when}  ({one['because']})"
    if len(moves) > MAX_MOVES_SHOWN:
        yield f"… and {len(moves) - MAX_MOVES_SHOWN:,} more moves; --format json has them all"


def _totals(document: dict[str, Any]) -> Iterator[str]:
    totals = document["totals"]
    worst = sorted(document["nodes"].items(), key=lambda item: (-item[1], item[0]))
    most = [f"{name} {_span(seconds)}" for name, seconds in worst[:5] if seconds]
    yield f"out of production: {_span(totals['seconds_out'])} of nodes' time{_format_worst_nodes(most)}"
    yield f"actions: {_counts(totals['actions'])}; tickets: {totals['tickets']}"


def _difference(against: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"against policy {against['policy']}, which has {_span(against['totals']['seconds_out'])} out of production"
    yield f"  actions: {_counts(against['totals']['actions'])}; tickets: {against['totals']['tickets']}"
    yield f"  breaker trips: {len(against['breaker_trips'])}"
    for title, key in (("only here", "only_here"), ("only there", "only_there")):
        moves = [one for one in against["decisions"][key] if one["timing"] != "record"]
        yield f"  {title}: {len(moves)} {'move' if len(moves) == 1 else 'moves'}"
        yield from (f"    {line}" for line in _decisions(moves))


def _format_worst_nodes(most: Iterable[str]) -> str:
    named = ", ".join(most)
    return f"; the most: {named}" if named else ""


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _span(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds))
