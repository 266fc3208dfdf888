"""`assay results`: what runs came to, in the format that is asked for, and what became of it since."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, get_args

import typer

from assay.cli.desk import Desk, FleetDir
from assay.model.checks import Phase
from assay.model.errors import Trouble
from assay.model.outcome import VERDICTS

if TYPE_CHECKING:
    from assay.harness.results.wanted import Wanted
    from assay.model.outcome import Run

app = typer.Typer(add_completion=False, help="Show what a run came to, and compare it with another.")

T = TypeVar("T")
Form = Literal["text", "json", "jsonl", "junit", "markdown", "github", "nagios"]
COLOURS = {"fail": typer.colors.RED, "error": typer.colors.YELLOW}
LISTED = 20

RunName = Annotated[str, typer.Argument(metavar="[RUN]", help="Its id or how that begins; last, last~1 …")]
Nodes = Annotated[list[str] | None, typer.Option("--node", help="Only this node.")]
Pools = Annotated[list[str] | None, typer.Option("--pool", help="Only this pool, or fabric.")]
Racks = Annotated[list[str] | None, typer.Option("--rack", help="Only the nodes of this rack.")]
Checks = Annotated[list[str] | None, typer.Option("--check", metavar="GLOB", help="Only checks such as '*ecc*'.")]
Verdicts = Annotated[list[str] | None, typer.Option("--verdict", help=f"Only: {', '.join(VERDICTS)}.")]
Phases = Annotated[list[str] | None, typer.Option("--phase", help="Only checks of this phase.")]
Subjects = Annotated[list[str] | None, typer.Option("--subject", metavar="GLOB", help="Only such as 'n0003/gpu*'.")]
Compare = Annotated[bool, typer.Option("--compare", help="Compare with the run before that looked at as much.")]
Against = Annotated[str, typer.Option("--against", metavar="RUN", help="Compare with this earlier run.")]
MaxAge = Annotated[float, typer.Option("--max-age", metavar="HOURS", help="An older run is not to be relied on.")]
List = Annotated[bool, typer.Option("--list", help="List the runs, newest first.")]
Most = Annotated[int, typer.Option("--most", min=1, help="List at most so many runs.")]
Formats = Annotated[
    Form,
    typer.Option(
        "--format",
        help="text for people, json and jsonl for machines, junit and github for CI, markdown for comments, nagios.",
    ),
]


@app.command()
def results(
    run: RunName = "last",
    node: Nodes = None,
    pool: Pools = None,
    rack: Racks = None,
    check: Checks = None,
    verdict: Verdicts = None,
    phase: Phases = None,
    subject: Subjects = None,
    compare: Compare = False,
    against: Against = "",
    max_age: MaxAge = math.inf,
    list_: List = False,
    most: Most = LISTED,
    form: Formats = "text",
    fleet: FleetDir = Path(),
) -> None:
    """Show what a run came to; with --compare or --against, what changed since an earlier one.

    Exit 0: nothing counts against the fleet; 1: something does, is worse than before, or the run has not ended or is
    too old; 2: it could not be told. `--format nagios` has the exit codes of monitoring plug-ins: 0, 1 warning,
    2 critical, 3 unknown.
    """
    desk = Desk(fleet.resolve())
    if list_:
        _list(desk, most, form)
        return
    from assay.harness.results.wanted import Wanted

    try:
        wanted = Wanted(
            nodes=tuple(node or ()),
            pools=tuple(pool or ()),
            racks=_racks(desk, rack or []),
            checks=tuple(check or ()),
            verdicts=_known(verdict or [], VERDICTS, "verdict"),
            phases=_known(phase or [], get_args(Phase), "phase"),
            subjects=tuple(subject or ()),
        )
        if compare or against:
            code = _compared(desk, run, against, wanted, form)
        else:
            code = _told(desk, run, wanted, form, max_age)
    except Trouble as trouble:
        if form != "nagios":
            raise
        from assay.harness.results.as_nagios import UNKNOWN, line

        typer.echo(line(UNKNOWN, trouble.what))
        code = UNKNOWN
    raise typer.Exit(code)


def _told(desk: Desk, name: str, wanted: Wanted, form: Form, max_age: float) -> int:
    """Tell a run; return the exit code."""
    from assay.harness.results.as_nagios import state
    from assay.harness.results.formats import FORMATS
    from assay.harness.results.result import Result
    from assay.harness.results.wanted import refuse_unknown
    from assay.harness.store.read import Stored
    from assay.harness.store.runs import find

    with Stored.open(find(desk.reports, name)) as stored:
        refuse_unknown(stored.connection, wanted)
        result = Result(stored, wanted, desk.root, _too_old(desk, stored.run, max_age))
        _print(FORMATS[form].run(result))
        return state(result) if form == "nagios" else int(not result.well)


def _too_old(desk: Desk, run: Run, hours: float) -> str:
    """Return that a run is older than this, "" for one that is not."""
    age = (desk.clock.now() - datetime.fromisoformat(run.at)).total_seconds() / 3600
    return f"it is {age:.0f} h old, more than {hours:g} h" if age > hours else ""


def _compared(desk: Desk, name: str, against: str, wanted: Wanted, form: Form) -> int:
    """Tell what changed between two runs; return the exit code."""
    from assay.harness.results.as_nagios import state_of
    from assay.harness.results.compare import compare
    from assay.harness.results.differences import differences
    from assay.harness.results.earlier import comparable, earlier
    from assay.harness.results.formats import FORMATS
    from assay.harness.store.runs import all_runs, find

    tell = FORMATS[form].comparison
    if tell is None or wanted.verdicts:
        option = "--verdict" if tell else f"--format {form}"
        raise Trouble(f"{option} is of one run", fix="leave it away, or `--compare` and `--against`")
    new = find(desk.reports, name)
    before = earlier(all_runs(desk.reports), new)
    old = find(desk.reports, against) if against else comparable(before, new)
    with compare(old, new, wanted) as comparison:
        found = differences(comparison, before, desk.root)
        _print(tell(found))
        return state_of(found) if form == "nagios" else int(comparison.worse > 0)


def _list(desk: Desk, most: int, form: Form) -> None:
    from assay.harness.results.listing import as_json, as_text
    from assay.harness.store.runs import all_runs

    if form not in ("text", "json"):
        raise Trouble(f"--list is no {form}", fix="`--format text` or `--format json`")
    runs = list(reversed(all_runs(desk.reports)))
    if not runs:
        raise Trouble(f"there is no run in {desk.reports / 'runs'}", fix="run `assay validate` first")
    _print((as_json if form == "json" else as_text)(runs, most))


def _known(given: Collection[str], known: tuple[T, ...], what: str) -> tuple[T, ...]:
    """Return what is given. Raises Trouble for what does not exist."""
    for name in given:
        if name not in map(str, known):
            raise Trouble(f"there is no {what} {name}", fix=f"it is one of {', '.join(map(str, known))}")
    return tuple(one for one in known if one in given)


def _racks(desk: Desk, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the nodes of racks, as the inventory has them now. Raises Trouble for one that does not exist."""
    if not names:
        return {}
    from assay.harness.kept import fleet_at

    nodes = fleet_at(desk.root).nodes.values()
    racks = {name: frozenset(node.name for node in nodes if node.rack == name) for name in names}
    for name in (name for name, inside in racks.items() if not inside):
        known = sorted({node.rack for node in nodes})
        near = get_close_matches(name, known, n=3) or known[:3]
        raise Trouble(f"there is no rack {name} in the inventory", fix=f"did you mean {' or '.join(near)}?")
    return racks


def _print(lines: Iterable[str]) -> None:
    """Print lines as they come; what counts is coloured where a person looks."""
    colour = sys.stdout.isatty()
    for line in lines:
        said = COLOURS.get(line.split(maxsplit=1)[0]) if colour and line.strip() else None
        sys.stdout.write((typer.style(line, fg=said) if said else line) + "\n")
