"""`assay results`: a run, all runs as a list, or the difference of two; `assay gate`: whether a run meets the gates."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import (
    WHICH,
    FleetDir,
    Nodes,
    Phases,
    Pools,
    RunName,
    complete_checks,
    complete_racks,
    complete_runs,
    option,
)
from assay.cli.workspace import Workspace, require_known
from assay.model.errors import AssayError
from assay.model.outcome import VERDICTS
from assay.model.specs.check_catalog import DEFAULT_PHASES

if TYPE_CHECKING:
    from assay.validate.results.outcome_filter import OutcomeFilter
    from assay.validate.results.run_gates import GateReport


Form = Literal["text", "json", "csv", "junit"]
COLOURS = {"fail": typer.colors.RED, "error": typer.colors.YELLOW}
DEFAULT_RUNS_LISTED = 20
_COMPARE = "Comparison"
_LIST = "List of runs"

Racks = Annotated[
    list[str] | None, option("--rack RACK", "Only the nodes of this rack.", group=WHICH, complete=complete_racks)
]
Checks = Annotated[
    list[str] | None,
    option("--check GLOB", "Only these checks, such as '*ecc*'.", group=WHICH, complete=complete_checks),
]
Verdicts = Annotated[
    list[str] | None, option("--verdict VERDICT", f"Only this verdict: {', '.join(VERDICTS)}.", group=WHICH)
]
Compare = Annotated[bool, option("--compare", "Compare with the previous run of the same selection.", group=_COMPARE)]
Against = Annotated[
    str, option("--against RUN", "Compare with this earlier run.", group=_COMPARE, complete=complete_runs)
]
List = Annotated[bool, option("--list", "List the runs, newest first.", group=_LIST)]
Most = Annotated[int, option("--most N", "List at most N runs.", group=_LIST, min=1)]
Formats = Annotated[
    Form,
    option("--format", "text for people, json for machines, csv for spreadsheets, junit for CI.", show_default=False),
]


def results(
    run: RunName = "last",
    node: Nodes = None,
    pool: Pools = None,
    rack: Racks = None,
    check: Checks = None,
    verdict: Verdicts = None,
    phase: Phases = None,
    compare: Compare = False,
    against: Against = "",
    list_: List = False,
    most: Most = DEFAULT_RUNS_LISTED,
    form: Formats = "text",
    fleet: FleetDir = Path(),
) -> None:
    """Show the results of a run; with --compare or --against, what changed since an earlier run.

    Exit codes: 0 no problem; 1 a failure, a change for the worse, or a run that is incomplete or rests on old evidence;
    2 the run cannot be read.
    """
    workspace = Workspace(fleet.resolve())
    if list_:
        _list_runs(workspace, most, form)
        return
    from assay.validate.results.outcome_filter import OutcomeFilter

    require_known(verdict or [], VERDICTS, "verdict")
    require_known(phase or [], _list_phases(workspace), "phase")
    outcome_filter = OutcomeFilter(
        nodes=tuple(node or ()),
        pools=tuple(pool or ()),
        racks=_find_nodes_of_racks(workspace, rack or []),
        checks=tuple(check or ()),
        verdicts=tuple(name for name in VERDICTS if name in (verdict or ())),
        phases=tuple(dict.fromkeys(phase or ())),
    )
    if compare or against:
        code = _show_comparison(workspace, run, against, outcome_filter, form)
    else:
        code = _show_run(workspace, run, outcome_filter, form)
    raise typer.Exit(code)


def _list_phases(workspace: Workspace) -> Sequence[str]:
    """Return the phases of the fleet, or the default ones where no fleet can be read beside the results."""
    try:
        return workspace.fleet.phases
    except AssayError:
        return DEFAULT_PHASES


def _show_run(workspace: Workspace, name: str, outcome_filter: OutcomeFilter, form: Form) -> int:
    """Print the results of a run; return the exit code."""
    from assay.ledger.runs.reader import StoredRun, find_run
    from assay.tell.report.registry import RESULT_FORMATS
    from assay.validate.results.outcome_filter import refuse_unknown_names
    from assay.validate.results.run_summary import RunSummary

    with StoredRun.open_whole(find_run(workspace.reports_dir, name)) as stored:
        refuse_unknown_names(stored.connection, outcome_filter)
        summary = RunSummary(stored, outcome_filter, workspace.clock.now())
        _print_lines(RESULT_FORMATS[form].run(summary))
        return int(not summary.passed)


def _show_comparison(workspace: Workspace, name: str, against: str, outcome_filter: OutcomeFilter, form: Form) -> int:
    """Print what changed between two runs; return the exit code."""
    from assay.ledger.runs.reader import find_run, list_runs
    from assay.tell.report.registry import RESULT_FORMATS
    from assay.validate.results.comparison_summary import collect_differences
    from assay.validate.results.paired_runs import find_comparable_run, list_earlier_runs
    from assay.validate.results.run_comparison import RunComparison

    format_comparison = RESULT_FORMATS[form].comparison
    if format_comparison is None or outcome_filter.verdicts:
        option = "--verdict" if format_comparison else f"--format {form}"
        raise AssayError(f"{option} is for one run", fix="leave it out, or leave out --compare and --against")
    new = find_run(workspace.reports_dir, name)
    earlier = list_earlier_runs(list_runs(workspace.reports_dir), new)
    old = find_run(workspace.reports_dir, against) if against else find_comparable_run(earlier, new, _tell_skipped)
    with RunComparison(old, new, outcome_filter) as comparison:
        differences = collect_differences(comparison)
        _print_lines(format_comparison(differences))
        return int(comparison.worse > 0)


def _tell_skipped(error: AssayError) -> None:
    typer.echo(f"left out: {error}", err=True)


def _list_runs(workspace: Workspace, most: int, form: Form) -> None:
    from assay.ledger.runs.reader import list_runs
    from assay.tell.report.text_formats import format_run_list_json, format_run_list_text

    if form not in ("text", "json"):
        raise AssayError(f"--list has no format {form}", fix="use `--format text` or `--format json`")
    runs = list(reversed(list_runs(workspace.reports_dir)))
    if not runs:
        raise AssayError(f"there is no run in {workspace.reports_dir / 'runs'}", fix="run `assay validate` first")
    _print_lines((format_run_list_json if form == "json" else format_run_list_text)(runs, most, _tell_skipped))


def _find_nodes_of_racks(workspace: Workspace, names: list[str]) -> dict[str, frozenset[str]]:
    """Return rack → its nodes in the present inventory. Raises AssayError for an unknown rack."""
    if not names:
        return {}
    from assay.declare.fleet_cache import load_cached_fleet

    nodes = load_cached_fleet(workspace.root).nodes.values()
    require_known(names, (node.rack for node in nodes), "rack")
    return {name: frozenset(node.name for node in nodes if node.rack == name) for name in names}


def _print_lines(lines: Iterable[str]) -> None:
    """Print lines as they come. In a terminal, failures and errors are coloured."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in lines:
        colour = COLOURS.get(line.split(maxsplit=1)[0]) if coloured and line.strip() else None
        sys.stdout.write((typer.style(line, fg=colour) if colour else line) + "\n")


GateFormat = Annotated[
    Literal["text", "json", "github"],
    option(
        "--format", "text for people, json for machines, github for annotations of a pull request.", show_default=False
    ),
]


def gate(run: RunName = "last", fleet: FleetDir = Path(), form: GateFormat = "text") -> None:
    """Test a run against the fleet's gates (specs/gates). Show by how much each bound is missed, and where.

    Exit codes: 0 every bound holds; 1 a bound is missed; 2 the run or the gates cannot be read.
    """
    from assay.ledger.runs.reader import find_run, list_runs
    from assay.validate.results.run_gates import check_gates

    workspace = Workspace(fleet.resolve())
    if not workspace.fleet.gates:
        fix = "write specs/gates/default.yaml; the fleet that `assay init` creates has an example"
        raise AssayError("the fleet has no gates", fix=fix)
    gates, reports = list(workspace.fleet.gates.values()), workspace.reports_dir
    report = check_gates(workspace.fleet, gates, find_run(reports, run), list_runs(reports), workspace.clock.now())
    typer.echo(GATE_FORMATTERS[form](report))
    raise typer.Exit(0 if report.holds else 1)


def _format_text(report: GateReport) -> str:
    lines = [f"{'holds ' if bound.holds else 'MISSED'} {bound.says}  {bound.source}" for bound in report.bounds]
    return "\n".join([*lines, _format_summary(report)])


def _format_github(report: GateReport) -> str:
    from assay.tell.report.github import format_annotation

    annotations = []
    for bound in report.bounds:
        if not bound.holds:
            file, _, line = bound.source.rpartition(":")
            title = f"gate {bound.gates}: {bound.pool or bound.what.replace('_', ' ')}"
            annotations.append(format_annotation("error", {"file": file, "line": line, "title": title}, bound.says))
    return "\n".join([*annotations, _format_summary(report)])


def _format_summary(report: GateReport) -> str:
    missed = sum(not bound.holds for bound in report.bounds)
    text = f"{missed} of {len(report.bounds)} bounds missed" if missed else f"all {len(report.bounds)} bounds hold"
    return f"run {report.run}: {text}"


GATE_FORMATTERS: dict[str, Callable[[GateReport], str]] = {
    "text": _format_text,
    "json": format_answer,
    "github": _format_github,
}
