"""`assay replay --policy FILE --events FILE`: what a policy would have done with a history of faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import OptionalFleetDir, OutputFormat
from assay.cli.surrounding_fleet import load_surrounding_fleet
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.node import Node
    from assay.trends.replay.assumed_durations import ReplayDurations
    from assay.trends.replay.fault_history import FaultHistory
    from assay.trends.replay.replay_nodes import ReplayRules
    from assay.trends.replay.replay_result import ReplayResult

replay_app = typer.Typer(add_completion=False)


@replay_app.command()
def replay(
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy to try.", show_default=False)],
    events: Annotated[
        Path, typer.Option(metavar="FILE", help="The history: one JSON object per line.", show_default=False)
    ],
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another policy, to compare with.", show_default=False)
    ] = None,
    fleet: OptionalFleetDir = None,
    format: OutputFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Replay a history of faults under a policy: its decisions, the actions, the time out of service.

    Exit codes: 0 replayed; 2 the policy or the history cannot be read.
    """
    from assay.trends.replay.replay_result import format_replay_result

    surrounding, nodes = load_surrounding_fleet(fleet)
    history = _read_events(events)
    rules = _load_rules(policy, surrounding)
    result = _run_replay(rules, nodes, history)
    other = _run_replay(_load_rules(against, surrounding), nodes, history) if against else None
    document = format_replay_result(history, rules, result, other)
    if format == "json":
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
        return
    from assay.cli.render.replay_text import format_replay_text

    typer.echo("\n".join(format_replay_text(document)))


def _read_events(file: Path) -> FaultHistory:
    from assay.trends.replay.fault_history import read_history

    try:
        with file.open("rb") as lines:
            return read_history(lines, str(file))
    except OSError as error:
        raise AssayError(f"cannot be read: {error.strerror}", where=str(file), fix="name a file of events") from None


def _load_rules(policy: Path, fleet: Fleet) -> ReplayRules:
    from assay.fleet.policy_file import read_policy
    from assay.trends.replay.replay_nodes import ReplayRules

    read = read_policy(policy, fleet.root)
    return ReplayRules(read.policy, fleet.fault_catalog, fleet.profiles, _assumed_durations(), read.lines)


def _assumed_durations() -> ReplayDurations:
    from assay.plan.assumptions import ACTION_HOURS, PERSON_HOURS, SUITE_HOURS
    from assay.trends.replay.assumed_durations import AssumedDuration, ReplayDurations

    actions = {name: AssumedDuration(assumed.hours, assumed.source) for name, assumed in ACTION_HOURS.items()}
    suite = AssumedDuration(SUITE_HOURS.hours, SUITE_HOURS.source)
    return ReplayDurations(actions, suite, AssumedDuration(PERSON_HOURS.hours, PERSON_HOURS.source))


def _run_replay(rules: ReplayRules, nodes: dict[str, Node], history: FaultHistory) -> ReplayResult:
    from assay.trends.replay.replay_nodes import collect_replay_nodes
    from assay.trends.replay.simulator import run_replay

    return run_replay(rules, collect_replay_nodes(nodes, history.events, rules), history.events)
