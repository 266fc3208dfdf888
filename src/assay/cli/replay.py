"""`assay replay --policy FILE --events FILE`: what a policy would have done with a history of faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.desk import Format
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.model.fleet import Fleet, Node
    from assay.trends.replay.events import History
    from assay.trends.replay.pace import Pace
    from assay.trends.replay.played import Played
    from assay.trends.replay.rules import Rules

app = typer.Typer(add_completion=False)
Where = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        help="The fleet repository; without one the one here, else no nodes and the faults that assay knows.",
        envvar="ASSAY_FLEET",
    ),
]


@app.command()
def replay(
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy to play.")],
    events: Annotated[Path, typer.Option(metavar="FILE", help="The history, one JSON object a line.")],
    against: Annotated[Path | None, typer.Option(metavar="FILE", help="Another policy, to compare with.")] = None,
    fleet: Where = None,
    format: Format = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Play a history of faults under a policy: what it decides, and what that costs.

    Exit code 0: answered; 2: the policy or the history cannot be read.
    """
    from assay.cli.replayed import as_text
    from assay.trends.replay.answer import answer

    around, listed = around_us(fleet)
    history = _history(events)
    rules = _rules(policy, around)
    played = _played(rules, listed, history)
    other = _played(_rules(against, around), listed, history) if against else None
    document = answer(history, rules, played, other)
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False) if format == "json" else "\n".join(as_text(document)))


def around_us(fleet: Path | None) -> tuple[Fleet, dict[str, Node]]:
    """Return the fleet named, or the one here, with its nodes; else the specs that assay brings, and no nodes."""
    from assay.fleet.load import load_fleet
    from assay.starter.make import example

    root = fleet if fleet is not None else Path()
    if (root / "specs" / "faults").is_dir():
        found = load_fleet(root)
        return found, dict(found.nodes)
    if fleet is not None:
        raise Trouble("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    return load_fleet(example()), {}


def _history(file: Path) -> History:
    from assay.trends.replay.reader import read_history

    try:
        with file.open("rb") as lines:
            return read_history(lines, str(file))
    except OSError as error:
        raise Trouble(f"cannot be read: {error.strerror}", where=str(file), fix="name a file of events") from None


def _rules(policy: Path, around: Fleet) -> Rules:
    from assay.fleet.policy_file import read_policy
    from assay.trends.replay.rules import Rules

    read = read_policy(policy, around.root)
    return Rules(read.policy, around.catalog, around.profiles, _pace(), read.lines)


def _pace() -> Pace:
    from assay.plan.assumptions import ACTIONS, PERSON, SUITES
    from assay.trends.replay.pace import Pace, Span

    actions = {name: Span(one.hours, one.source) for name, one in ACTIONS.items()}
    return Pace(actions, Span(SUITES.hours, SUITES.source), Span(PERSON.hours, PERSON.source))


def _played(rules: Rules, listed: dict[str, Node], history: History) -> Played:
    from assay.trends.replay.cast import cast
    from assay.trends.replay.play import play

    return play(rules, cast(listed, history.events, rules), history.events)
