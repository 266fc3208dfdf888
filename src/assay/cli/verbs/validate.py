"""`assay validate`: run the suites and write down the outcomes."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from assay.cli.render.run_progress import show_run_progress
from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError
from assay.model.specs.check_catalog_and_gates import Phase
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.harness.runs.run_validation import RunMeans, RunResult
    from assay.harness.runs.sharding import ShardRunner
    from assay.model.fleet import Fleet

validate_app = typer.Typer(add_completion=False, help="Run the suites and write down the outcomes.")

Pools = Annotated[list[str] | None, typer.Option("--pool", help="Judge the nodes of this pool.")]
Nodes = Annotated[list[str] | None, typer.Option("--node", help="Judge this node.")]
Phases = Annotated[list[str] | None, typer.Option("--phase", help=f"Run the checks of: {', '.join(get_args(Phase))}.")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Share the nodes among this many processes.")]
Evidence = Annotated[Path | None, typer.Option("--evidence", help="Judge this folder, not the last evidence.")]
Resume = Annotated[str | None, typer.Option("--resume", metavar="RUN", help="Go on with a run: id, last, last~1, …")]
Deadline = Annotated[float, typer.Option("--deadline", min=1, metavar="S", help="Seconds that one shard may take.")]
ShardHostOption = Annotated[
    Literal["here", "slurm"], typer.Option("--on", help="Where: processes here, or a Slurm job array.")
]
Sbatch = Annotated[str, typer.Option("--sbatch", metavar="WORDS", help="For sbatch: --sbatch '--partition=checks'.")]
PytestArgs = Annotated[list[str] | None, typer.Argument(metavar="[-- PYTEST ARGS]", help='For pytest: -- -k "pcie".')]

COLOURS = {"fail": typer.colors.RED, "error": typer.colors.YELLOW}
MAX_LINES_SHOWN = 60
EXIT_INTERRUPTED = 130  # as a shell says it of Ctrl-C
WEEKLY = "weekly"


@validate_app.command()
def validate(
    pytest_args: PytestArgs = None,
    pool: Pools = None,
    node: Nodes = None,
    phase: Phases = None,
    jobs: Jobs = 1,
    evidence: Evidence = None,
    resume: Resume = None,
    deadline: Deadline = 600,
    on: ShardHostOption = "here",
    sbatch: Sbatch = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Judge nodes by their last evidence.

    Exit 0: all passed, or skipped with a reason, or is excused; 1: something failed or could not be judged; 2: nothing
    could be run; 130: interrupted, `--resume` goes on.
    """
    from assay.harness.runs.run_validation import RunInterrupted, RunMeans, RunNotRecorded

    desk = Workspace(fleet.resolve())
    if resume and any((pool, node, phase, evidence, pytest_args)):
        raise AssayError(
            "--resume goes on with what the run was told", fix="leave out pools, nodes, phases and the like"
        )
    shards = _shards(on, jobs, sbatch)
    try:
        with show_run_progress() as progress:
            means = RunMeans(shards, deadline, progress)
            if resume:
                result = _resume_run(desk, resume, means)
            else:
                nodes = _select_nodes(desk.fleet, pool or [], node or [])
                phases = _require_known(phase or [], get_args(Phase), "phase")
                typed = _describe_selection(
                    {"--pool": pool, "--node": node, "--phase": phase}, evidence, pytest_args or []
                )
                result = _start_run(desk, nodes, phases, evidence, pytest_args or [], typed, jobs, means)
    except RunInterrupted as stopped:
        typer.echo(f"interrupted; what was judged is kept: assay validate --resume {stopped.run}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except RunNotRecorded as kept:
        fix = f"{kept.fix}; then record what was judged: assay validate --resume {kept.run}"
        raise AssayError(kept.what, where=kept.where, fix=fix) from kept
    _print_json(result, desk) if form == "json" else _print_text(result, desk)
    _append_to_history(desk)
    raise typer.Exit(0 if result.well else 1)


def _shards(on: str, jobs: int, sbatch: str) -> ShardRunner:
    """Return what runs shards there. Raises Trouble where nothing can."""
    if on == "slurm":
        from assay.harness.runs.slurm_array import SlurmArray

        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nobody would be left to hear the array
        return SlurmArray(
            jobs, _split_sbatch_options(sbatch), lambda line: typer.echo(f"assay validate: {line}", err=True)
        )
    if sbatch:
        raise AssayError("--sbatch is for Slurm", fix="add --on slurm")
    from assay.harness.runs.local_processes import LocalProcesses

    return LocalProcesses(jobs)


def _split_sbatch_options(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise AssayError(f"--sbatch is no list of words: {error}", fix="quote them as a shell wants it") from None


def _resume_run(desk: Workspace, name: str, means: RunMeans) -> RunResult:
    from assay.harness.runs.run_validation import resume_run

    return resume_run(desk.fleet, name, reports=desk.reports_dir, ledger=desk.ledger, clock=desk.clock, means=means)


def _start_run(
    desk: Workspace,
    nodes: list[str],
    phases: list[str],
    evidence: Path | None,
    pytest_args: list[str],
    typed: str,
    jobs: int,
    means: RunMeans,
) -> RunResult:
    from assay.harness.runs.run_validation import run_validation as run

    if evidence is None and (not phases or WEEKLY in phases):
        _evaluate_weeks(desk, nodes, anew=WEEKLY in phases)
    return run(
        desk.fleet,
        evidence or desk.evidence_dir / "latest",
        nodes=nodes,
        phases=phases,
        reports=desk.reports_dir,
        ledger=desk.ledger,
        clock=desk.clock,
        jobs=jobs,
        extra=pytest_args,
        typed=typed,
        means=means,
    )


def _describe_selection(chosen: Mapping[str, list[str] | None], evidence: Path | None, pytest_args: list[str]) -> str:
    """Return the selection as it was typed, for who looks at the run later."""
    words = [word for option, names in chosen.items() for name in names or () for word in (option, name)]
    words += ["--evidence", str(evidence)] if evidence else []
    return shlex.join([*words, *(["--", *pytest_args] if pytest_args else [])])


def _evaluate_weeks(desk: Workspace, nodes: list[str], *, anew: bool) -> None:
    """Gather what the weekly checks judge, and write the page."""
    from assay.cli.fabric.weekly_evaluation import evaluate_weeks_of_nodes

    evaluate_weeks_of_nodes(desk, nodes, anew=anew)


def _select_nodes(fleet: Fleet, pools: list[str], nodes: list[str]) -> list[str]:
    _require_known(pools, {node.pool for node in fleet.nodes.values()}, "pool")
    _require_known(nodes, fleet.nodes, "node")
    chosen = [
        node.name
        for node in fleet.nodes.values()
        if (not pools or node.pool in pools) and (not nodes or node.name in nodes)
    ]
    if not chosen:
        raise AssayError("no node is selected", fix="see inventory/ for the nodes and their pools")
    return chosen


def _require_known(names: list[str], existing: Iterable[str], what: str) -> list[str]:
    """Return `names`. Raises Trouble for the first that does not exist."""
    known = list(existing)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=3) or sorted(known)[:8]
            raise AssayError(f"there is no {what} {name!r}", fix=f"did you mean {' or '.join(near)}?")
    return names


def _append_to_history(desk: Workspace) -> None:
    """Write the run into history. The run itself is safe, whatever becomes of that."""
    from assay.results.history.append import append_missing_runs

    for trouble in append_missing_runs(desk.reports_dir):
        typer.secho(str(trouble), fg=typer.colors.YELLOW, err=True)


def _print_json(result: RunResult, desk: Workspace) -> None:
    """Print one document, an outcome at a time: there may be a million."""
    from dataclasses import asdict

    from assay.results.stale_known_issues import find_stale_issues

    head = {
        "run": asdict(result.run),
        "whole": result.whole,
        "counts": {verdict: result.counts[verdict] for verdict in ("pass", "fail", "error", "skip")},
        "deciding": result.deciding,
        "missing": result.missing,
        "unexpected": [
            {"issue": one.issue.issue, "passes": one.passes} for one in find_stale_issues(result.stored, desk.fleet)
        ],
    }
    sys.stdout.write(json.dumps(head)[:-1] + ', "outcomes": [')
    for number, outcome in enumerate(result.stored.outcomes()):
        sys.stdout.write((", " if number else "") + json.dumps(outcome.as_json()))
    sys.stdout.write("]}\n")


def _print_text(result: RunResult, desk: Workspace) -> None:
    from assay.results.outcome_lines import format_problems
    from assay.results.run_summary import RunSummary
    from assay.results.stale_known_issues import find_stale_issues

    told = RunSummary(result.stored)
    if result.judged:
        lines = [*format_problems(told, sys.maxsize)]
        for line in lines[:MAX_LINES_SHOWN]:
            typer.secho(line, fg=COLOURS.get(line.split()[0]))
        if len(lines) > MAX_LINES_SHOWN:
            more = len(lines) - MAX_LINES_SHOWN
            typer.echo(f"… and {format_count(more, 'line')} more: `assay results {result.run.id}` shows them all")
        for one in find_stale_issues(result.stored, desk.fleet):
            typer.secho(f"known {one.description}", fg=typer.colors.YELLOW)
    else:
        typer.echo("the run is complete: nothing was left to judge")
    missing = f", {result.missing} of them not delivered" if result.missing else ""
    typer.echo(f"{told.headline()}{missing}")
    typer.echo(f"run {result.run.id}, written to {desk.reports_dir / 'runs' / result.run.id}")
    if not result.whole:
        typer.echo(f"  → `assay validate --resume {result.run.id}` judges what was lost or late")
