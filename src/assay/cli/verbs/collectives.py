"""`assay collectives`: finds the node, adapter or uplink that makes collectives slow, wrong or hang."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import HOW, WHICH, FleetDir, OutputFormat, nodes_argument
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.cli.verbs.collectives_inputs import SearchedFabric
    from assay.validate.collectives.free_nodes import FreeNodes
    from assay.validate.collectives.report import CollectivesReport
    from assay.validate.collectives.result_file import ResultFile, SearchHeader
    from assay.validate.collectives.search_run import SearchRunners

collectives_app = typer.Typer(add_completion=False, no_args_is_help=True)

Nodes = Annotated[
    list[str] | None,
    nodes_argument("Only these nodes. Default: all of the design."),
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
    float | None,
    typer.Option(
        metavar="S",
        rich_help_panel=HOW,
        help="Seconds until a run counts as hung. Default: those of the workload, or 120.",
        min=0.1,
    ),
]
USUAL_DEADLINE_S = 120.0
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
    deadline: Deadline = None,
    at_once: AtOnce = 512,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show which nodes are free, why others are not, the rounds, how long they take, and what they would exercise.

    Exit codes: 0 shown; 2 the design or the fleet cannot be read.
    """
    from assay.cli.verbs.collectives_inputs import find_free_nodes, load_searched_fabric
    from assay.cli.verbs.collectives_plan import format_plan, plan_as_json
    from assay.validate.collectives.search import CollectiveSearch
    from assay.validate.collectives.time_estimate import estimate_time

    workspace = Workspace(fleet.resolve())
    fabric = load_searched_fabric(workspace, design, routes)
    free = find_free_nodes(workspace, fabric.map, nodes or (), allocated)
    search = CollectiveSearch(fabric.map, free.free, seed)
    longest = max((len(planned.pairs) for planned in search.screening), default=0)
    time = estimate_time(len(search.screening), longest, at_once, deadline or USUAL_DEADLINE_S)
    arguments = (fabric.design, search, free, time)
    typer.echo(format_answer(plan_as_json(*arguments), indent=1) if form == "json" else format_plan(*arguments))


@collectives_app.command()
def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the results go; an interrupted search continues there.")
    ],
    nodes: Nodes = None,
    workload: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            envvar="ASSAY_COLLECTIVES_WORKLOAD",
            rich_help_panel=HOW,
            help="A CollectiveWorkload below specs/collectives/: its commands for one node, two, and many.",
        ),
    ] = "",
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
        typer.Option(
            metavar="NODE=FAULT",
            rich_help_panel=HOW,
            help="With --cpu: slow, hung, dead or wrong. NODE:alone, NODE:2 (a rail), A+B (only at scale).",
        ),
    ] = None,
    rails: Annotated[
        bool, typer.Option("--rails", rich_help_panel=HOW, help="With --cpu: run each pair once for each rail.")
    ] = False,
    scratch: Annotated[
        Path | None,
        typer.Option(metavar="DIR", rich_help_panel=HOW, help="A folder for {out} that nodes and this machine share."),
    ] = None,
    deadline: Deadline = None,
    at_once: AtOnce = 512,
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
    from assay.act.orders.trust_orders import refuse_watched
    from assay.cli.verbs import collectives_inputs as inputs
    from assay.declare.stand_ins import refuse_workload
    from assay.model.decision import LOAD
    from assay.validate.collectives import workload_runners
    from assay.validate.collectives.result_file import ResultFile, SearchHeader

    workspace = Workspace(fleet.resolve())
    workspace.announce()
    fabric = inputs.load_searched_fabric(workspace, design, routes)
    inputs.require_folders(file, scratch)
    deadline_s = deadline or USUAL_DEADLINE_S
    chosen = (
        workload_runners.make_cpu_workload(plant or [], deadline_s, rails)
        if cpu
        else inputs.choose_workload(workspace, workload, command, deadline_s)
    )
    if not cpu:
        refuse_workload(workspace.fleet, chosen)
    free = inputs.find_free_nodes(workspace, fabric.map, nodes or list(fabric.map.nodes) * cpu, allocated or cpu)
    inputs.require_met(plant or [], free.free, cpu=cpu, rails=rails)
    inputs.require_two(free)
    for name in () if cpu else free.free:
        refuse_watched(workspace.fleet, name, LOAD)
    limits = workload_runners.RunLimits(at_once, scratch, deadline_s=deadline or 0)
    runners = workload_runners.make_runners(chosen, limits)
    rule, stages = workload_runners.make_speed_rule(chosen), workload_runners.choose_stages(chosen, "last")
    rail_numbers = tuple(range(fabric.map.rails)) if runners.pair.has_rails else ()
    asked = SearchHeader(free.free, seed, fabric.design, rail_numbers, rule, stages)
    _show(_run(fabric, _continue_search(ResultFile(file), asked, free), runners, ResultFile(file)), form)


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
    from assay.cli.verbs.collectives_inputs import SearchedFabric, load_searched_fabric
    from assay.validate.collectives.fabric_map import FabricMap
    from assay.validate.collectives.result_file import ResultFile
    from assay.validate.collectives.staged_report import build_staged_report
    from assay.validate.collectives.staged_search import SearchResults, StagedSearch

    header, pairs = ResultFile(file).read()
    results = SearchResults(pairs, ResultFile(file).read_groups())
    if not (results.pairs or results.groups):
        raise AssayError("there is no result in it", where=str(file), fix="run the search: assay collectives run")
    used = (*(name for one in pairs for name in one.pair), *(name for one in results.groups for name in one.nodes))
    names = list(dict.fromkeys([*(header.nodes if header else ()), *used]))
    if (fleet / "inventory").is_dir():
        fabric = load_searched_fabric(Workspace(fleet.resolve()), design or (header.design if header else ""), routes)
    else:
        fabric = SearchedFabric(FabricMap.without_design(names), "")
    if unknown := [name for name in names if name not in fabric.map.nodes]:
        fix = "name the design of these nodes with --design, or another --fleet"
        raise AssayError(f"{unknown[0]} is no node of this fabric", where=str(file), fix=fix)
    search = (
        StagedSearch(fabric.map, header.nodes, header.seed, header.rule, header.stages)
        if header
        else StagedSearch(fabric.map, names)
    )
    _show(build_staged_report(search, results), form)


def _continue_search(file: ResultFile, asked: SearchHeader, free: FreeNodes) -> SearchHeader:
    """Return the header of the search: of an interrupted one, if its nodes are still free."""
    from assay.cli.progress import print_step

    header, found = file.continue_or_start(asked)
    if count := len(found) + len(file.read_groups()):
        print_step(f"continues the search in {file.path}: {len(header.nodes)} nodes, {count} results")
    if lost := [name for name in header.nodes if name not in free.free]:
        reason = free.excluded.get(lost[0], "it is not in this fabric")
        fix = "continue when it is free again, or name a new file"
        raise AssayError(f"the search cannot continue: {lost[0]} is not free: {reason}", where=str(file.path), fix=fix)
    return header


def _run(fabric: SearchedFabric, header: SearchHeader, runners: SearchRunners, file: ResultFile) -> CollectivesReport:
    """Run what is left of a search, with its progress on stderr."""
    import signal

    from assay.cli.progress import show_progress
    from assay.validate.collectives.search_run import run_search
    from assay.validate.collectives.staged_report import build_staged_report
    from assay.validate.collectives.staged_search import SearchResults, StagedSearch

    search = StagedSearch(fabric.map, header.nodes, header.seed, header.rule, header.stages)
    results = SearchResults(file.read()[1], file.read_groups())
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that the pairs are killed
    try:
        with show_progress("ran") as show:
            results = run_search(
                search, header.rails, runners, file, results, lambda name, done, total: show({name: (done, total)})
            )
    except KeyboardInterrupt:
        fix = "run the same command again: the search continues with the pairs that are left"
        raise AssayError("interrupted; the results so far are kept", where=str(file.path), fix=fix) from None
    return build_staged_report(search, results)


def _show(report: CollectivesReport, form: str) -> None:
    from assay.cli.verbs.report_text import format_report

    typer.echo(format_answer(report.as_json(), indent=1) if form == "json" else format_report(report))
    raise typer.Exit(1 if report.named or report.stages.needed_blocks else 0)
