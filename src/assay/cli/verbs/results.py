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

from assay.cli.workspace import FleetDir, Workspace
from assay.model.errors import AssayError
from assay.model.outcome import VERDICTS
from assay.model.specs.check_catalog_and_gates import Phase

if TYPE_CHECKING:
    from assay.model.outcome import SuiteRun
    from assay.results.outcome_filter import OutcomeFilter

results_app = typer.Typer(add_completion=False, help="Show what a run came to, and compare it with another.")

T = TypeVar("T")
Form = Literal["text", "json", "jsonl", "junit", "markdown", "github", "nagios"]
COLOURS = {"fail": typer.colors.RED, "error": typer.colors.YELLOW}
DEFAULT_RUNS_LISTED = 20

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


@results_app.command()
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
    most: Most = DEFAULT_RUNS_LISTED,
    form: Formats = "text",
    fleet: FleetDir = Path(),
) -> None:
    """Show what a run came to; with --compare or --against, what changed since an earlier one.

    Exit 0: nothing counts against the fleet; 1: something does, is worse than before, or the run has not ended or is
    too old; 2: it could not be told. `--format nagios` has the exit codes of monitoring plug-ins: 0, 1 warning,
    2 critical, 3 unknown.
    """
    desk = Workspace(fleet.resolve())
    if list_:
        _list_runs(desk, most, form)
        return
    from assay.results.outcome_filter import OutcomeFilter

    try:
        wanted = OutcomeFilter(
            nodes=tuple(node or ()),
            pools=tuple(pool or ()),
            racks=_racks(desk, rack or []),
            checks=tuple(check or ()),
            verdicts=_require_known(verdict or [], VERDICTS, "verdict"),
            phases=_require_known(phase or [], get_args(Phase), "phase"),
            subjects=tuple(subject or ()),
        )
        if compare or against:
            code = _show_comparison(desk, run, against, wanted, form)
        else:
            code = _show_run(desk, run, wanted, form, max_age)
    except AssayError as trouble:
        if form != "nagios":
            raise
        from assay.results.formats.nagios_format import NAGIOS_UNKNOWN, format_nagios_line

        typer.echo(format_nagios_line(NAGIOS_UNKNOWN, trouble.what))
        code = NAGIOS_UNKNOWN
    raise typer.Exit(code)


def _show_run(desk: Workspace, name: str, wanted: OutcomeFilter, form: Form, max_age: float) -> int:
    """Tell a run; return the exit code."""
    from assay.results.formats.format_registry import RESULT_FORMATS
    from assay.results.formats.nagios_format import find_run_state
    from assay.results.outcome_filter import refuse_unknown_names
    from assay.results.run_summary import RunSummary
    from assay.results.store.reader import StoredRun
    from assay.results.store.run_lookup import find_run

    with StoredRun.open(find_run(desk.reports_dir, name)) as stored:
        refuse_unknown_names(stored.connection, wanted)
        result = RunSummary(stored, wanted, desk.root, _describe_age(desk, stored.run, max_age))
        _print(RESULT_FORMATS[form].run(result))
        return find_run_state(result) if form == "nagios" else int(not result.well)


def _describe_age(desk: Workspace, run: SuiteRun, hours: float) -> str:
    """Return that a run is older than this, "" for one that is not."""
    age = (desk.clock.now() - datetime.fromisoformat(run.at)).total_seconds() / 3600
    return f"it is {age:.0f} h old, more than {hours:g} h" if age > hours else ""


def _show_comparison(desk: Workspace, name: str, against: str, wanted: OutcomeFilter, form: Form) -> int:
    """Tell what changed between two runs; return the exit code."""
    from assay.results.comparison.comparison_summary import collect_differences
    from assay.results.comparison.run_comparison import compare_runs
    from assay.results.formats.format_registry import RESULT_FORMATS
    from assay.results.formats.nagios_format import find_comparison_state
    from assay.results.store.run_lookup import find_comparable_run, find_run, list_earlier_runs, list_runs

    tell = RESULT_FORMATS[form].comparison
    if tell is None or wanted.verdicts:
        option = "--verdict" if tell else f"--format {form}"
        raise AssayError(f"{option} is of one run", fix="leave it away, or `--compare` and `--against`")
    new = find_run(desk.reports_dir, name)
    before = list_earlier_runs(list_runs(desk.reports_dir), new)
    old = find_run(desk.reports_dir, against) if against else find_comparable_run(before, new)
    with compare_runs(old, new, wanted) as comparison:
        found = collect_differences(comparison, before, desk.root)
        _print(tell(found))
        return find_comparison_state(found) if form == "nagios" else int(comparison.worse > 0)


def _list_runs(desk: Workspace, most: int, form: Form) -> None:
    from assay.results.formats.text_format import format_run_list_json, format_run_list_text
    from assay.results.store.run_lookup import list_runs

    if form not in ("text", "json"):
        raise AssayError(f"--list is no {form}", fix="`--format text` or `--format json`")
    runs = list(reversed(list_runs(desk.reports_dir)))
    if not runs:
        raise AssayError(f"there is no run in {desk.reports_dir / 'runs'}", fix="run `assay validate` first")
    _print((format_run_list_json if form == "json" else format_run_list_text)(runs, most))


def _require_known(given: Collection[str], known: tuple[T, ...], what: str) -> tuple[T, ...]:
    """Return what is given. Raises Trouble for what does not exist."""
    for name in given:
        if name not in map(str, known):
            raise AssayError(f"there is no {what} {name}", fix=f"it is one of {', '.join(map(str, known))}")
    return tuple(one for one in known if one in given)


def _racks(desk: Workspace, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the nodes of racks, as the inventory has them now. Raises Trouble for one that does not exist."""
    if not names:
        return {}
    from assay.harness.fleet_cache import load_cached_fleet

    nodes = load_cached_fleet(desk.root).nodes.values()
    racks = {name: frozenset(node.name for node in nodes if node.rack == name) for name in names}
    for name in (name for name, inside in racks.items() if not inside):
        known = sorted({node.rack for node in nodes})
        near = get_close_matches(name, known, n=3) or known[:3]
        raise AssayError(f"there is no rack {name} in the inventory", fix=f"did you mean {' or '.join(near)}?")
    return racks


def _print(lines: Iterable[str]) -> None:
    """Print lines as they come; what counts is coloured where a person looks."""
    colour = sys.stdout.isatty()
    for line in lines:
        said = COLOURS.get(line.split(maxsplit=1)[0]) if colour and line.strip() else None
        sys.stdout.write((typer.style(line, fg=said) if said else line) + "\n")
