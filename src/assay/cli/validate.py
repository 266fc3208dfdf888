"""`assay validate`: run the suites and write down the outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.model.checks import Phase
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.harness.run import RunResult
    from assay.model.fleet import Fleet

app = typer.Typer(add_completion=False, help="Run the suites and write down the outcomes.")

Pools = Annotated[list[str] | None, typer.Option("--pool", help="Judge the nodes of this pool.")]
Nodes = Annotated[list[str] | None, typer.Option("--node", help="Judge this node.")]
Phases = Annotated[list[str] | None, typer.Option("--phase", help=f"Run the checks of: {', '.join(get_args(Phase))}.")]
Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Share the nodes among this many processes.")]
Evidence = Annotated[Path | None, typer.Option("--evidence", help="Judge this folder, not the last evidence.")]
PytestArgs = Annotated[list[str] | None, typer.Argument(metavar="[-- PYTEST ARGS]", help='For pytest: -- -k "pcie".')]

COLOURS = {"fail": typer.colors.RED, "error": typer.colors.YELLOW}
MOST_LINES = 60
WEEKLY = "weekly"


@app.command()
def validate(
    pytest_args: PytestArgs = None,
    pool: Pools = None,
    node: Nodes = None,
    phase: Phases = None,
    jobs: Jobs = 1,
    evidence: Evidence = None,
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Judge nodes by their last evidence.

    Exit 0: all passed, or skipped with a reason; 1: something failed or could not be judged; 2: nothing could be run.
    """
    from assay.harness.run import validate as run

    desk = Desk(fleet.resolve())
    nodes = _chosen(desk.fleet, pool or [], node or [])
    if evidence is None and (not phase or WEEKLY in phase):
        _look_at_weeks(desk, nodes, anew=WEEKLY in (phase or []))
    with _progress() as progress:
        result = run(
            desk.fleet,
            evidence or desk.evidence / "latest",
            nodes=nodes,
            phases=_known(phase or [], get_args(Phase), "phase"),
            reports=desk.reports,
            ledger=desk.ledger,
            jobs=jobs,
            extra=pytest_args or [],
            clock=desk.clock,
            progress=progress,
        )
    _print_json(result) if form == "json" else _print_text(result, desk)
    raise typer.Exit(0 if result.well else 1)


def _look_at_weeks(desk: Desk, nodes: list[str], *, anew: bool) -> None:
    """Gather what the weekly checks judge, and write the page."""
    from assay.cli.fabric_week import look_at_weeks

    look_at_weeks(desk, nodes, anew=anew)


def _chosen(fleet: Fleet, pools: list[str], nodes: list[str]) -> list[str]:
    _known(pools, {node.pool for node in fleet.nodes.values()}, "pool")
    _known(nodes, fleet.nodes, "node")
    chosen = [
        node.name
        for node in fleet.nodes.values()
        if (not pools or node.pool in pools) and (not nodes or node.name in nodes)
    ]
    if not chosen:
        raise Trouble("no node is selected", fix="see inventory/ for the nodes and their pools")
    return chosen


def _known(names: list[str], existing: Iterable[str], what: str) -> list[str]:
    """Return `names`. Raises Trouble for the first that does not exist."""
    known = list(existing)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=3) or sorted(known)[:8]
            raise Trouble(f"there is no {what} {name!r}", fix=f"did you mean {' or '.join(near)}?")
    return names


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show how far the run is, on stderr, where a person looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("judging", total=None)
        yield lambda done, due: bar.update(task, completed=done, total=due)


def _print_json(result: RunResult) -> None:
    from dataclasses import asdict

    document = {
        "run": asdict(result.run),
        "counts": {verdict: result.counts[verdict] for verdict in ("pass", "fail", "error", "skip")},
        "missing": len(result.missing),
        "outcomes": [outcome.as_json() for outcome in result.outcomes],
    }
    print(json.dumps(document))  # noqa: T201 — the answer


def _print_text(result: RunResult, desk: Desk) -> None:
    from assay.harness.calm import lines

    told = lines(result.outcomes)
    for verdict, line in told[:MOST_LINES]:
        typer.secho(line, fg=COLOURS.get(verdict))
    if len(told) > MOST_LINES:
        typer.echo(f"… and {len(told) - MOST_LINES} lines more")
    words = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "skipped"}
    counted = [f"{result.counts[verdict]} {word}" for verdict, word in words.items() if result.counts[verdict]]
    missing = f", {len(result.missing)} of them not delivered" if result.missing else ""
    typer.echo(f"{len(result.outcomes)} outcomes on {len(result.run.nodes)} nodes: {', '.join(counted)}{missing}")
    typer.echo(f"run {result.run.id}, written to {desk.reports / 'runs' / result.run.id}")
