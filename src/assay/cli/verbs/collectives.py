"""`assay collectives`: finds the node, adapter or uplink that makes collectives slow, wrong or hang."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.adapters.scheduler import StatusReadings, format_jobs, group_by_scheduler, load_scheduler_adapter
from assay.cli.context_line import print_answer
from assay.cli.options import HOW, WHICH, FleetDir, OutputFormat, argument, nodes_argument, option
from assay.cli.verbs.fabric_learn import read_dump
from assay.cli.workspace import Workspace, require_known
from assay.model.errors import AssayError
from assay.model.facts import fact, frozen, inline
from assay.model.specs.load_parts import find_lacking_part
from assay.model.specs.workload import CollectiveWorkload
from assay.model.text.lists import fold_names, format_count, format_list, suggest_nearest
from assay.validate.collectives.cpu_workload import parse_plant
from assay.validate.collectives.fabric_map import FabricMap, add_routes, build_fabric_map, find_nvlink_domains
from assay.validate.collectives.judging import GroupObservation, PairObservation
from assay.validate.collectives.report import CollectivesReport
from assay.validate.collectives.rounds import PairRound, plan_screening

if TYPE_CHECKING:
    from assay.validate.collectives.result_file import ResultFile, SearchHeader
    from assay.validate.collectives.run import SearchRunners

SHOWN_PAIRS = 8
SHOWN_PARTS = 12
USUAL_DEADLINE_S = 120.0


def format_report(report: CollectivesReport) -> str:
    """Return the report, the named parts first."""
    return "\n".join(_list_lines(report))


def _list_lines(report: CollectivesReport) -> Iterator[str]:
    yield _summarize(report)
    yield from report.stages.list_lines()
    for named in report.named:
        part, bad = named.part, len(named.evidence)
        yield ""
        yield f"{part.kind} {part.name}: {named.symptom}; bad in {bad} of {named.tests} runs"
        yield from _list_pairs(named.evidence)
    for case in report.undecided:
        shown = ", ".join(f"{part.kind} {part.name}" for part in case.suspects[:SHOWN_PARTS])
        more = f" and {len(case.suspects) - SHOWN_PARTS} more" if len(case.suspects) > SHOWN_PARTS else ""
        yield ""
        yield f"could not tell: one of {shown}{more}"
        yield f"  {case.reason}"
        yield from _list_pairs(case.evidence)
    if report.transient:
        yield ""
        yield "bad once, good in every later pair:"
        yield from _list_pairs(report.transient)
    yield ""
    yield "exercised:"
    yield from (f"  {share}" for share in report.coverage.values())
    if "uplinks" in report.coverage:
        yield f"  routing: {report.routing}"
    yield from (f"  {count} of the pairs could not be judged: {reason}" for reason, count in report.unmeasured.items())
    if report.unchecked:
        yield f"  {report.unchecked} results were not checked: they may be wrong"


def _summarize(report: CollectivesReport) -> str:
    rounds = f"{report.pairs:,} pairs in {len(report.rounds)} rounds"
    named = f"{len(report.named)} named" if report.named else "nobody named"
    open_cases = f", {len(report.undecided)} could not be told" if report.undecided else ""
    return f"{rounds}: {named}{open_cases}"


def _list_pairs(evidence: Sequence[PairObservation | GroupObservation]) -> Iterator[str]:
    for observation in evidence[:SHOWN_PAIRS]:
        yield f"  {observation.round}  {observation.label}: {observation.why}"
    if len(evidence) > SHOWN_PAIRS:
        yield f"  and {len(evidence) - SHOWN_PAIRS} more"


collectives_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Find the node, adapter or uplink that makes collectives slow, wrong or hang.",
)

Design = Annotated[str, option("--design NAME", "The FabricDesign. Default: the only one.")]
Seed = Annotated[int, option("--seed N", "Chooses the partners.", min=0)]
Routes = Annotated[
    Path | None,
    option("--routes FILE", "The output of dump_fts: which uplink leads where. Default: assumed from the design."),
]


@collectives_app.command()
def plan(
    nodes: Annotated[list[str] | None, nodes_argument("Only these nodes. Default: all of the design.")] = None,
    design: Design = "",
    seed: Seed = 0,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show which nodes are free, why the others are not, and which pairs a search would run first.

    Exit codes: 0 shown; 2 the design or the fleet cannot be read.
    """
    workspace = Workspace(fleet.resolve())
    fabric = load_searched_fabric(workspace, design, None)
    free = find_free_nodes(workspace, fabric.map, nodes or (), is_allocated=False)
    rounds = tuple(plan_screening(fabric.map, free.free, seed))
    counts = ", ".join(f"{planned.name} {format_count(len(planned.pairs), 'pair')}" for planned in rounds)
    pairs = f"rounds: {counts}; more where a pair is bad" if rounds else "no pair can run: that needs two free nodes"
    print_answer(CollectivesPlan(fabric.design, free, rounds), form, [*free.list_lines(), pairs])


@collectives_app.command()
def run(
    file: Annotated[Path, argument("FILE", "Where the results go; an interrupted search continues there.")],
    nodes: Annotated[list[str] | None, nodes_argument("Only these nodes. Default: all of the design.")] = None,
    workload: Annotated[
        str,
        option(
            "--workload NAME",
            "A CollectiveWorkload below specs/collectives/: its commands for one node, two, and many.",
            group=HOW,
            envvar="ASSAY_COLLECTIVES_WORKLOAD",
        ),
    ] = "",
    cpu: Annotated[bool, option("--cpu", "Try it: all pairs on this machine, without GPUs.", group=HOW)] = False,
    plant: Annotated[
        list[str] | None,
        option(
            "--plant NODE=FAULT", "With --cpu: slow, hung, dead or wrong. NODE:alone, A+B (only at scale).", group=HOW
        ),
    ] = None,
    scratch: Annotated[
        Path | None, option("--scratch DIR", "A folder for {out} that nodes and this machine share.", group=HOW)
    ] = None,
    deadline: Annotated[
        float | None,
        option(
            "--deadline S",
            "Seconds until a run counts as hung. Default: those of the workload, or 120.",
            group=HOW,
            min=0.1,
        ),
    ] = None,
    at_once: Annotated[int, option("--at-once N", "Runs at the same time.", group=HOW, min=1)] = 512,
    design: Design = "",
    routes: Routes = None,
    allocated: Annotated[
        bool, option("--allocated", "The NODEs are allocated to you: do not ask their scheduler.", group=WHICH)
    ] = False,
    seed: Seed = 0,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Run the search, and name the faulty parts. A run that was interrupted continues with the same FILE.

    Exit codes: 0 nobody is named; 1 somebody is named; 2 the search could not run, or was interrupted.
    """
    from assay.act.orders.orders import refuse_watched
    from assay.cli.output import print_step
    from assay.declare.stand_ins import refuse_workload
    from assay.model.decision import LOAD
    from assay.validate.collectives import run
    from assay.validate.collectives.result_file import ResultFile, SearchHeader

    workspace = Workspace(fleet.resolve())
    workspace.announce()
    fabric = load_searched_fabric(workspace, design, routes)
    if file.is_dir():
        raise AssayError("the results go into a file, and this is a folder", where=str(file), fix="name a file in it")
    deadline_s = deadline or USUAL_DEADLINE_S
    chosen = run.make_cpu_workload(plant or [], deadline_s) if cpu else choose_workload(workspace, workload)
    if not cpu:
        refuse_workload(workspace.fleet, chosen)
    free = find_free_nodes(workspace, fabric.map, nodes or list(fabric.map.nodes) * cpu, allocated or cpu)
    require_met(plant or [], free.free, cpu=cpu)
    if len(free.free) < 2:
        fix = "name other nodes, or wait until these are free"
        raise AssayError(f"a pair needs two free nodes: {'; '.join(free.list_lines())}", fix=fix)
    for line in free.list_lines():
        print_step(line)
    for name in () if cpu else free.free:
        refuse_watched(workspace.fleet, name, LOAD)
        if lacking := find_lacking_part(chosen.needs, workspace.fleet.parts_of(name)):
            raise AssayError(f"{name} has no {lacking}, which {chosen.name} needs", fix="name the nodes that have it")
    limits = run.RunLimits(at_once, scratch, deadline_s=deadline or 0, gpus=workspace.fleet.gpu_counts)
    runners = run.make_runners(chosen, limits)
    rule, stages = run.make_speed_rule(chosen), run.choose_stages(chosen, "last")
    rail_numbers = tuple(range(fabric.map.rails)) if runners.pair.has_rails else ()
    asked = SearchHeader(free.free, seed, fabric.design, rail_numbers, rule, stages)
    _show(_run(fabric, _continue_search(ResultFile(file), asked, free), runners, ResultFile(file)), form)


@collectives_app.command()
def explain(
    file: Annotated[Path, argument("FILE", "Results, one JSON object in a line.")],
    design: Design = "",
    routes: Routes = None,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Explain results again: who is named, on which evidence, what could not be told, and what was exercised.

    Exit codes: 0 nobody is named; 1 somebody is named; 2 the results cannot be read.
    """
    from assay.validate.collectives.report import build_staged_report
    from assay.validate.collectives.result_file import ResultFile
    from assay.validate.collectives.search import StagedSearch

    header, results = ResultFile(file).read()
    if not (results.pairs or results.groups):
        raise AssayError("there is no result in it", where=str(file), fix="run the search: assay collectives run")
    nodes = dict.fromkeys(header.nodes if header else ())
    for result in results.pairs:
        nodes |= dict.fromkeys(result.pair)
    for group in results.groups:
        nodes |= dict.fromkeys(group.nodes)
    names = list(nodes)
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
    from assay.cli.output import print_step

    header, results = file.continue_or_start(asked)
    if count := len(results.pairs) + len(results.groups):
        print_step(f"continues the search in {file.path}: {len(header.nodes)} nodes, {count} results")
    if lost := [name for name in header.nodes if name not in free.free]:
        reason = free.excluded.get(lost[0], "it is not in this fabric")
        fix = "continue when it is free again, or name a new file"
        raise AssayError(f"the search cannot continue: {lost[0]} is not free: {reason}", where=str(file.path), fix=fix)
    return header


def _run(fabric: SearchedFabric, header: SearchHeader, runners: SearchRunners, file: ResultFile) -> CollectivesReport:
    """Run what is left of a search, with its progress on stderr."""
    import signal

    from assay.cli.output import show_progress
    from assay.validate.collectives.report import build_staged_report
    from assay.validate.collectives.run import run_search
    from assay.validate.collectives.search import StagedSearch

    search = StagedSearch(fabric.map, header.nodes, header.seed, header.rule, header.stages)
    _, results = file.read()
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
    print_answer(report, form, [format_report(report)])
    raise typer.Exit(1 if report.named or report.stages.needed_blocks else 0)


@frozen
class SearchedFabric:
    """The map of a fabric, and the name of its design, "" if no design is known."""

    map: FabricMap
    design: str


def load_searched_fabric(workspace: Workspace, design: str, routes: Path | None) -> SearchedFabric:
    """Return the fabric of a design, of the only design, or without a design one that knows the nodes only."""
    fleet = workspace.fleet
    if not fleet.designs and not design:
        if routes:
            raise AssayError("without a FabricDesign, nobody knows which ports are uplinks", where="--routes")
        return SearchedFabric(FabricMap.without_design(fleet.nodes), "")
    from assay.fabric.design.topology_cache import load_topology, select_design

    name = select_design(fleet, design).name
    topology = load_topology(workspace.root, name, workspace.overlays)
    fabric = build_fabric_map(topology, find_nvlink_domains(fleet))
    if routes:
        from assay.fabric.readers.forwarding_tables import read_forwarding_tables

        fabric = add_routes(fabric, topology, read_forwarding_tables(read_dump(routes)).tables)
    return SearchedFabric(fabric, name)


def find_free_nodes(workspace: Workspace, fabric: FabricMap, names: Sequence[str], is_allocated: bool) -> FreeNodes:
    """Return which nodes of a fabric are free. Nodes that are allocated to the caller are free for the caller."""
    require_known(names, fabric.nodes, "node of this fabric")
    if is_allocated:
        if not names:
            raise AssayError("which nodes are allocated to you?", where="--allocated", fix="name them")
        wanted = set(names)
        return FreeNodes(
            tuple(name for name in fabric.nodes if name in wanted),
            {name: "not selected" for name in fabric.nodes if name not in wanted},
        )
    nodes = [workspace.fleet.nodes[name] for name in fabric.nodes if name in workspace.fleet.nodes]
    readings: StatusReadings = group_by_scheduler(nodes, load_scheduler_adapter).read_statuses()
    holds = {
        state.node: f"{state.hold.reason} ({state.hold.who})" for state in workspace.read_node_states() if state.hold
    }
    return select_free_nodes(list(fabric.nodes), set(names), readings, holds)


def choose_workload(workspace: Workspace, name: str) -> CollectiveWorkload:
    """Return a declared workload. Raises AssayError if there is none."""
    known = workspace.fleet.collective_workloads
    if not name:
        fix = f"name one of {', '.join(known) or 'specs/collectives/'}, or try it with --cpu"
        raise AssayError("nothing says how to run a collective", where="--workload", fix=fix)
    if name not in known:
        fix = suggest_nearest(name, known) or f"there are {', '.join(known) or 'none'}"
        raise AssayError(f"no CollectiveWorkload is called {name}", where="--workload", fix=fix)
    return known[name]


def require_met(plants: Sequence[str], nodes: Collection[str], *, cpu: bool) -> None:
    """Raise AssayError for a fault that no run would meet."""
    if plants and not cpu:
        raise AssayError("faults are planted on this machine only", where="--plant", fix="add --cpu")
    for plant in map(parse_plant, plants):
        require_known([name for name in (plant.first, plant.second) if name], nodes, "node in this search called")


@fact
class FreeNodes:
    """The nodes that take part, and the others."""

    free: tuple[str, ...]
    """The free nodes."""
    excluded: Mapping[str, str]
    """The other nodes, each with the reason."""

    def list_lines(self) -> Iterator[str]:
        """Yield how many are free, and why the others are not, the most frequent reason first."""
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for name, reason in self.excluded.items():
            by_reason[reason].append(name)
        yield f"{len(self.free):,} of {format_count(len(self.free) + len(self.excluded), 'node')} are free"
        for reason, names in sorted(by_reason.items(), key=lambda item: -len(item[1])):
            yield f"not free: {format_list(fold_names(names), 4)}: {reason}"


@fact
class CollectivesPlan:
    """What a search would begin with."""

    design: str
    """The FabricDesign; "" without one, and then no link can be named."""
    nodes: FreeNodes = inline()
    rounds: tuple[PairRound, ...]
    """The first rounds, in order, each with its pairs."""


def select_free_nodes(
    names: Collection[str], wanted: Collection[str], readings: StatusReadings, holds: Mapping[str, str]
) -> FreeNodes:
    """Return which of `names` are free: no job, no cordon, no hold, and a scheduler that says so.

    `wanted` are the nodes that a person named; empty means all. `holds` has the reason of each held node.
    """
    excluded = {name: reason for name in names if (reason := _find_reason(name, wanted, readings, holds))}
    return FreeNodes(tuple(name for name in names if name not in excluded), excluded)


def _find_reason(name: str, wanted: Collection[str], readings: StatusReadings, holds: Mapping[str, str]) -> str:
    if wanted and name not in wanted:
        return "not selected"
    if name in holds:
        return f"held: {holds[name]}"
    if name in readings.errors:
        return f"cannot tell whether it is in use: {readings.errors[name].splitlines()[0]}"
    status = readings.statuses.get(name)
    if status is None:
        return "cannot tell whether it is in use: its scheduler does not know it"
    if not status.places_jobs:
        return "cannot tell whether it is in use: no scheduler places jobs on it; if it is yours, say --allocated"
    if status.jobs:
        return f"in use: {format_jobs(status.jobs)}"
    if status.cordon or status.foreign_cordon:
        return f"cordoned: {status.foreign_cordon or status.cordon}"
    return ""
