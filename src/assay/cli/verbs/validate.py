"""`assay validate`: runs the checks on collected evidence and records the outcomes."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import (
    HOW,
    WHICH,
    FleetDir,
    Jobs,
    Nodes,
    OutputFormat,
    Phases,
    Pools,
    argument,
    complete_runs,
    option,
)
from assay.cli.output import print_step, show_progress
from assay.cli.workspace import Workspace, require_known, select_nodes
from assay.model.errors import AssayError
from assay.model.text.lists import format_count

if TYPE_CHECKING:
    from assay.validate.runs.run_validation import RunOptions, RunResult
    from assay.validate.runs.sharding import ShardRunner


COLOURS = {"fail": typer.colors.RED, "error": typer.colors.YELLOW}
MAX_LINES_SHOWN = 60
EXIT_INTERRUPTED = 130  # as a shell reports Ctrl-C
WEEKLY = "weekly"

PytestArgs = Annotated[list[str] | None, argument("-- PYTEST OPTIONS", 'Options for pytest: -- -k "pcie".')]
Evidence = Annotated[Path | None, option("--evidence DIR", "Judge the documents in this folder.", group=WHICH)]
Resume = Annotated[
    str | None, option("--resume RUN", "Continue a run: its id, last, last~1, …", group=HOW, complete=complete_runs)
]
Deadline = Annotated[float, option("--deadline S", "Seconds for one shard.", group=HOW, min=1)]
ShardHost = Annotated[
    Literal["here", "slurm"], option("--on", "Run shards as processes here, or as a Slurm job array.", group=HOW)
]
Sbatch = Annotated[str, option("--sbatch OPTIONS", "Options for sbatch: --sbatch '--partition=checks'.", group=HOW)]


def validate(
    pytest_args: PytestArgs = None,
    pool: Pools = None,
    node: Nodes = None,
    phase: Phases = None,
    evidence: Evidence = None,
    jobs: Jobs = 1,
    resume: Resume = None,
    deadline: Deadline = 600,
    on: ShardHost = "here",
    sbatch: Sbatch = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Judge nodes on their last evidence, and record the outcomes as a run.

    Exit codes: 0 everything passed, was skipped with a reason, or is a known issue; 1 something failed or could not be
    judged; 2 nothing could be run; 130 interrupted: `--resume` continues the run.
    """
    from assay.validate.runs.run_validation import RunInterrupted, RunNotRecorded, RunOptions

    workspace = Workspace(fleet.resolve())
    if resume and any((pool, node, phase, evidence, pytest_args)):
        fix = "leave out nodes, pools, phases, --evidence and pytest's options"
        raise AssayError("--resume continues a run with its own selection", fix=fix)
    workspace.announce()
    if on == "slurm":
        workspace.home.require_fleet("--on slurm gives jobs to a real cluster")
    runner = _make_shard_runner(on, jobs, sbatch)
    try:
        with show_progress("judged") as show:
            run_options = RunOptions(runner, deadline, show)
            if resume:
                result = _resume_run(workspace, resume, run_options)
            else:
                nodes = select_nodes(workspace.fleet, node or [], pool or [])
                require_known(phase or [], workspace.fleet.phases, "phase")
                options = {"--pool": pool, "--node": node, "--phase": phase}
                # The selection as it was typed; the run stores it.
                words = [word for option, names in options.items() for name in names or () for word in (option, name)]
                words += ["--evidence", str(evidence)] if evidence else []
                user_selection = shlex.join([*words, *(["--", *pytest_args] if pytest_args else [])])
                result = _start_run(
                    workspace, nodes, phase or [], evidence, pytest_args or [], user_selection, jobs, run_options
                )
    except RunInterrupted as interrupted:
        typer.echo(f"interrupted; outcomes so far are kept: assay validate --resume {interrupted.run}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except RunNotRecorded as error:
        fix = f"{error.fix}; then record the outcomes: assay validate --resume {error.run}"
        raise AssayError(error.what, where=error.where, fix=fix) from error
    _print_json(result, workspace) if form == "json" else _print_text(result, workspace)
    _append_to_history(workspace)
    raise typer.Exit(0 if result.passed else 1)


def _make_shard_runner(on: str, jobs: int, sbatch: str) -> ShardRunner:
    """Return what runs the shards. Raises AssayError if sbatch's options are wrong or not wanted."""
    if on == "slurm":
        from assay.validate.runs.slurm_array import SlurmArray

        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that the job array is cancelled
        return SlurmArray(
            jobs, _split_sbatch_options(sbatch), lambda line: typer.echo(f"assay validate: {line}", err=True)
        )
    if sbatch:
        raise AssayError("--sbatch is for Slurm", fix="add --on slurm")
    from assay.validate.runs.shard_processes import LocalProcesses

    return LocalProcesses(jobs)


def _split_sbatch_options(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise AssayError(f"--sbatch cannot be split into words: {error}", fix="quote it as for a shell") from None


def _resume_run(workspace: Workspace, name: str, run_options: RunOptions) -> RunResult:
    from assay.validate.runs.run_validation import resume_run

    reports, ledger, clock = workspace.reports_dir, workspace.ledger, workspace.clock
    return resume_run(workspace.fleet, name, reports=reports, ledger=ledger, clock=clock, options=run_options)


def _start_run(
    workspace: Workspace,
    nodes: list[str],
    phases: list[str],
    evidence: Path | None,
    pytest_args: list[str],
    user_selection: str,
    jobs: int,
    run_options: RunOptions,
) -> RunResult:
    from assay.validate.runs.run_validation import run_validation

    if evidence is None and (not phases or WEEKLY in phases):
        _evaluate_fabric_weeks(workspace, nodes, refresh=WEEKLY in phases)
    return run_validation(
        workspace.fleet,
        evidence or workspace.evidence_dir / "latest",
        nodes=nodes,
        phases=phases,
        reports=workspace.reports_dir,
        ledger=workspace.ledger,
        clock=workspace.clock,
        jobs=jobs,
        extra=pytest_args,
        user_selection=user_selection,
        options=run_options,
    )


def _evaluate_fabric_weeks(workspace: Workspace, nodes: Iterable[str], *, refresh: bool) -> None:
    """Evaluate the weeks of these nodes' fabrics, which the weekly checks judge, and write their reports."""
    from assay.act.schedules.weekly_fabric import find_due_weeks, locate_week_report, record_fabric_week
    from assay.observe.evidence_store import EvidenceStore

    store, reports = EvidenceStore(workspace.evidence_dir), workspace.reports_dir
    for design in find_due_weeks(workspace.fleet, store, nodes, refresh=refresh):
        print_step(f"evaluating a week of the fabric {design.name}")
        record_fabric_week(workspace.fleet, store, reports, workspace.clock.now(), design)
        print_step(f"its report is {locate_week_report(reports, design)}")


def _append_to_history(workspace: Workspace) -> None:
    """Append the run to the history of all runs. A failure is only reported: the run itself is stored."""
    from assay.ledger.history.append import append_missing_runs

    for error in append_missing_runs(workspace.reports_dir):
        typer.secho(str(error), fg=typer.colors.YELLOW, err=True)


def _print_json(result: RunResult, workspace: Workspace) -> None:
    """Print one JSON document, outcome by outcome, since there may be a million."""
    from assay.model.outcome import VERDICTS
    from assay.tell.report.registry import UnexpectedPass, ValidationHead
    from assay.validate.results.stale import find_stale_issues

    stale = find_stale_issues(result.stored, workspace.fleet)
    head = ValidationHead(
        run=result.run,
        ended=result.complete,
        counts={verdict: result.counts[verdict] for verdict in VERDICTS},
        deciding=result.deciding,
        missing=result.missing,
        remark=result.remark,
        left_out=result.stored.count_left_out(),
        influences=dict(result.stored.influences),
        unexpected=[UnexpectedPass(passed.issue.issue, passed.passes) for passed in stale],
    )
    sys.stdout.write(format_answer(head)[:-1] + ', "outcomes": [')
    for number, outcome in enumerate(result.stored.outcomes()):
        sys.stdout.write((", " if number else "") + json.dumps(outcome.as_json()))
    sys.stdout.write("]}\n")


def _print_text(result: RunResult, workspace: Workspace) -> None:
    from assay.validate.results.outcome_lines import describe_influences, format_problems
    from assay.validate.results.run_summary import RunSummary
    from assay.validate.results.stale import find_stale_issues

    summary = RunSummary(result.stored)
    if result.remark:
        typer.secho(f"unreliable: {result.remark}", fg=typer.colors.YELLOW)
    run = result.run.id
    if result.judged:
        lines = [*format_problems(summary, sys.maxsize)]
        for line in lines[:MAX_LINES_SHOWN]:
            typer.secho(line, fg=COLOURS.get(line.split()[0]))
        if len(lines) > MAX_LINES_SHOWN:
            more = format_count(len(lines) - MAX_LINES_SHOWN, "line")
            typer.echo(f"… and {more} more: `assay results {run}` shows all of them")
        for issue in find_stale_issues(result.stored, workspace.fleet):
            typer.secho(f"known {issue.description}", fg=typer.colors.YELLOW)
    else:
        typer.echo("the run is complete: nothing was left to judge")
    missing = f", {result.missing} of them not delivered" if result.missing else ""
    typer.echo(f"{summary.headline()}{missing}")
    if influences := describe_influences(result.stored):
        typer.echo(f"judged with {influences}")
    typer.echo(f"run {run}, stored in {workspace.reports_dir / 'runs' / run}")
    if not result.complete:
        typer.echo(f"  → `assay validate --resume {run}` judges what was lost or too late")
