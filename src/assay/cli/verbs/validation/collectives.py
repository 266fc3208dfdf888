"""`assay collectives`: finds the node, adapter or uplink that makes collectives slow, wrong or hang."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import HOW, WHICH, FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.cli.collectives_inputs import SearchedFabric
    from assay.collectives.report import CollectivesReport
    from assay.collectives.runner.pair_command import CommandTemplate
    from assay.collectives.runner.pair_processes import PairRunner
    from assay.collectives.runner.result_file import ResultFile, SearchHeader

collectives_app = typer.Typer(add_completion=False, no_args_is_help=True)

Nodes = Annotated[
    list[str] | None, typer.Argument(metavar="NODE", help="Only these nodes. Default: all of the design.")
]
Design = Annotated[str, typer.Option(metavar="NAME", help="The FabricDesign. Default: the only one.")]
Routes = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The output of dump_fts: which uplink leads where. Default: assumed from the design."
    ),
]
Allocated = Annotated[
    bool,
    typer.Option(
        "--allocated", rich_help_panel=WHICH, help="The NODEs are allocated to you: do not ask their scheduler."
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Chooses the partners.", min=0)]
Deadline = Annotated[
    float, typer.Option(metavar="S", rich_help_panel=HOW, help="Seconds until a pair counts as hung.", min=0.1)
]
AtOnce = Annotated[int, typer.Option(metavar="N", rich_help_panel=HOW, help="Runs at the same time.", min=1)]


@collectives_app.callback()
def _collectives() -> None:
    """Find the node, adapter or uplink that makes collectives slow, wrong or hang."""


@collectives_app.command()
def plan(
    nodes: Nodes = None,
    design: Design = "",
    routes: Routes = None,
    allocated: Allocated = False,
    seed: Seed = 0,
    deadline: Deadline = 120,
    at_once: AtOnce = 512,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show which nodes are free, why others are not, the rounds, how long they take, and what they would exercise.

    Exit codes: 0 shown; 2 the design or the fleet cannot be read.
    """
    from assay.cli.collectives_inputs import find_free_nodes, load_searched_fabric
    from assay.cli.render.collectives_plan import format_plan, plan_as_json
    from assay.collectives.search import CollectiveSearch
    from assay.collectives.time_estimate import estimate_time

    workspace = Workspace(fleet.resolve())
    fabric = load_searched_fabric(workspace, design, routes)
    free = find_free_nodes(workspace, fabric.map, nodes or (), allocated)
    search = CollectiveSearch(fabric.map, free.free, seed)
    longest = max((len(planned.pairs) for planned in search.screening), default=0)
    time = estimate_time(len(search.screening), longest, at_once, deadline)
    arguments = (fabric.design, search, free, time)
    typer.echo(json.dumps(plan_as_json(*arguments), indent=1) if form == "json" else format_plan(*arguments))


@collectives_app.command()
def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the results go; an interrupted search continues there.")
    ],
    nodes: Nodes = None,
    command: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            envvar="ASSAY_COLLECTIVES_COMMAND",
            rich_help_panel=HOW,
            help="Runs one pair, {a} and {b}; also {rail}, {deadline}, and {out} for nccl-tests' -J.",
        ),
    ] = "",
    cpu: Annotated[
        bool, typer.Option("--cpu", rich_help_panel=HOW, help="Try it: all pairs on this machine, without GPUs.")
    ] = False,
    plant: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE=FAULT", rich_help_panel=HOW, help="With --cpu: slow, hung, dead or wrong."),
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(metavar="DIR", rich_help_panel=HOW, help="A folder for {out} that nodes and this machine share."),
    ] = None,
    deadline: Deadline = 120,
    at_once: AtOnce = 512,
    slow_below: Annotated[
        float, typer.Option(metavar="SHARE", help="Slow is below this share of the median.", min=0.1, max=1)
    ] = 0.93,
    expected: Annotated[
        float, typer.Option(metavar="GB/S", help="The expected bus bandwidth, in place of the median.", min=0)
    ] = 0,
    design: Design = "",
    routes: Routes = None,
    allocated: Allocated = False,
    seed: Seed = 0,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Run the search, and name the faulty parts. A run that was interrupted continues with the same FILE.

    Exit codes: 0 nobody is named; 1 somebody is named; 2 the search could not run, or was interrupted.
    """
    from assay.cli.collectives_inputs import find_free_nodes, load_searched_fabric, require_two
    from assay.cli.render.progress import print_step
    from assay.collectives.judging import SpeedRule
    from assay.collectives.runner.pair_processes import PairRunner
    from assay.collectives.runner.result_file import ResultFile, SearchHeader

    template = _choose_template(command, cpu, plant or [])
    workspace = Workspace(fleet.resolve())
    fabric = load_searched_fabric(workspace, design, routes)
    free = find_free_nodes(workspace, fabric.map, nodes or list(fabric.map.nodes) * cpu, allocated or cpu)
    require_two(free)
    rails = tuple(range(fabric.map.rails)) if template.has_rails else ()
    results = ResultFile(file)
    asked = SearchHeader(free.free, seed, fabric.design, rails, SpeedRule(slow_below, expected))
    header, found = results.continue_or_start(asked)
    if found:
        print_step(f"continues the search in {file}: {len(header.nodes)} nodes, {len(found)} results")
    if lost := [name for name in header.nodes if name not in free.free]:
        reason = free.excluded.get(lost[0], "it is not in this fabric")
        fix = "continue when it is free again, or name a new file"
        raise AssayError(f"the search cannot continue: {lost[0]} is not free: {reason}", where=str(file), fix=fix)
    _show(_run(fabric, header, PairRunner(template, deadline, at_once, scratch), results), form)


@collectives_app.command()
def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Results, one JSON object in a line.")],
    design: Design = "",
    routes: Routes = None,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Explain results again: who is named, on which evidence, what could not be told, and what was exercised.

    Exit codes: 0 nobody is named; 1 somebody is named; 2 the results cannot be read.
    """
    from assay.cli.collectives_inputs import SearchedFabric, load_searched_fabric
    from assay.collectives.fabric_map import FabricMap
    from assay.collectives.judging import SpeedRule
    from assay.collectives.report import build_report
    from assay.collectives.runner.result_file import ResultFile

    header, results = ResultFile(file).read()
    names = list(dict.fromkeys([*(header.nodes if header else ()), *(name for one in results for name in one.pair)]))
    if (fleet / "inventory").is_dir():
        fabric = load_searched_fabric(Workspace(fleet.resolve()), design or (header.design if header else ""), routes)
    else:
        fabric = SearchedFabric(FabricMap.without_design(names), "")
    if unknown := [name for name in names if name not in fabric.map.nodes]:
        fix = "name the design of these nodes with --design, or another --fleet"
        raise AssayError(f"{unknown[0]} is no node of this fabric", where=str(file), fix=fix)
    _show(build_report(fabric.map, names, results, header.rule if header else SpeedRule()), form)


def _choose_template(command: str, cpu: bool, plants: list[str]) -> CommandTemplate:
    from assay.collectives.runner import cpu_workload
    from assay.collectives.runner.pair_command import CommandTemplate

    if not cpu:
        if plants:
            raise AssayError("faults are planted on this machine only", where="--plant", fix="add --cpu")
        return CommandTemplate.parse(command)
    for plant in plants:
        if plant.partition("=")[2] not in cpu_workload.FAULTS:
            fix = f"write NODE=FAULT, with one of {', '.join(cpu_workload.FAULTS)}"
            raise AssayError(f"{plant!r} plants no fault", where="--plant", fix=fix)
    return CommandTemplate((sys.executable, "-I", "-S", cpu_workload.__file__, "{a}", "{b}", *plants))


def _run(fabric: SearchedFabric, header: SearchHeader, runner: PairRunner, file: ResultFile) -> CollectivesReport:
    """Run what is left of a search, with its progress on stderr."""
    import signal

    from assay.cli.render.progress import show_progress
    from assay.collectives.report import build_report
    from assay.collectives.runner.search_run import run_search
    from assay.collectives.search import CollectiveSearch

    search = CollectiveSearch(fabric.map, header.nodes, header.seed, header.rule)
    results = file.read()[1]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that the pairs are killed
    try:
        with show_progress("ran") as show:
            results = run_search(
                search, header.rails, runner, file, results, lambda name, done, total: show({name: (done, total)})
            )
    except KeyboardInterrupt:
        fix = "run the same command again: the search continues with the pairs that are left"
        raise AssayError("interrupted; the results so far are kept", where=str(file.path), fix=fix) from None
    return build_report(fabric.map, header.nodes, results, header.rule)


def _show(report: CollectivesReport, form: str) -> None:
    from assay.collectives.report_text import format_report

    typer.echo(json.dumps(report.as_json(), indent=1) if form == "json" else format_report(report))
    raise typer.Exit(1 if report.named else 0)
