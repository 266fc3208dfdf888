"""Searches idle nodes of a fabric with collectives, and new ones before they serve; records what it names.

Customers come first. The workload's commands run at the lowest priority. Before each run, and after each that did not
end well, the scheduler is asked whether a customer has the nodes: such a run is no result, and never a fault. What
could not be told, and what was bad once, becomes no fault and ends none. A named link belongs to no node, see
`act/tickets/collective_link_tickets.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from threading import Lock

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.act.schedules.due_slots import SlotTask
from assay.act.schedules.idle_visits import IdleNodeResult, find_exclusion, is_in_service
from assay.act.schedules.slot_runner import SlotResult, read_schedule_history
from assay.act.tickets.collective_link_tickets import make_link_facts, read_suspect_tray
from assay.adapters.scheduler import SchedulerNodeStatus, format_jobs, group_by_scheduler
from assay.decide.faults.detection import count_sightings
from assay.decide.faults.recovery import make_clearance
from assay.decide.state.decision_and_fault_entries import make_cleared_entry, make_fault_entry
from assay.decide.state.node_state import NodeState
from assay.declare.stand_ins import refuse_workload
from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.devices import list_adapter_names
from assay.model.entries.faults import FaultClearedEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen, to_json
from assay.model.faults.sightings import FaultSighting
from assay.model.node import Node
from assay.model.outcome import read_part
from assay.model.specs.load_parts import find_lacking_part
from assay.model.specs.schedules import CollectivesSearchSpec
from assay.model.specs.workload import CollectiveWorkload
from assay.model.text.lists import fold_names, format_count, format_list
from assay.model.timestamps import format_time
from assay.validate.collectives.fabric_map import (
    FabricMap,
    FabricPart,
    build_fabric_map,
    find_domain_designs,
    find_node,
    find_nvlink_domains,
    format_adapter,
)
from assay.validate.collectives.judging import PairObservation
from assay.validate.collectives.report import CollectivesReport, NamedPart, build_staged_report
from assay.validate.collectives.result_file import ResultFile, SearchHeader
from assay.validate.collectives.results import make_pair
from assay.validate.collectives.run import RunLimits, choose_stages, make_runners, make_speed_rule, run_search
from assay.validate.collectives.search import SearchResults, StagedSearch

PASSED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "SLURM_CONF", "KUBECONFIG", "TMPDIR")
"""What of our environment the commands get: launchers pass it on to the nodes, credentials included."""
KEPT_FILES = 20
ENOUGH_NODES = 4
"""So many nodes together tell which of them is bad: each has three partners."""


class CustomerWatch:
    """Says whether customers have nodes. All nodes are read together, and not more often than needed."""

    def __init__(self, context: ControllerContext, nodes: Sequence[Node]) -> None:
        self._context, self._nodes = context, list(nodes)
        self._lock, self._read_at = Lock(), float("-inf")
        self._reasons: Mapping[str, str] = {}

    def find_taker(self, nodes: Sequence[str], since: float) -> str:
        """Return who has some of the nodes, read at `since` or later. A scheduler that does not answer counts too."""
        with self._lock:
            if self._read_at < since:
                started = time.monotonic()
                readings = group_by_scheduler(self._nodes, self._context.workloads).read_statuses()
                self._reasons = {
                    node.name: reason for node in self._nodes if (reason := _find_use(readings.statuses.get(node.name)))
                }
                self._read_at = started
            return "; ".join(f"{name}: {self._reasons[name]}" for name in nodes if name in self._reasons)


@frozen
class SearchedNodes:
    """The nodes of a fabric that are idle now, and why the others in service are not."""

    free: tuple[Node, ...]
    left_out: tuple[IdleNodeResult, ...]


def search_collectives(context: ControllerContext, task: SlotTask) -> SlotResult:
    """Search one fabric, or the new nodes that wait for it. Too few idle nodes are told, and nothing runs."""
    how = task.line.schedule.search
    assert how is not None  # the model requires it for this job
    workload = context.fleet.collective_workloads.get(how.workload)
    if workload is None:
        raise AssayError(f"there is no CollectiveWorkload {how.workload}", where=f"schedule {task.line.name}")
    refuse_workload(context.fleet, workload)
    if task.burn_ins:
        return _search_new_nodes(context, task, how, workload)
    nodes = select_idle_nodes(context, task.line.target, workload)
    if len(nodes.free) < how.min_nodes:
        return _make_skipped_result(how, nodes)
    file = locate_results(context.home, task)
    name = task.line.target
    plan = _SearchPlan(str(task), name, _map_fabric(context, name), task.slot, how, workload)
    report, observations = _search_and_record(context, plan, nodes.free, file)
    history, designs = read_schedule_history(context.ledger), find_domain_designs(context.fleet)
    trays = find_suspect_trays(context, report, designs)
    links = make_link_facts(report, observations, history, task.line, designs, trays)
    words = [_format_summary(report, len(nodes.free)), *(f"{at}: {_describe_tray(tray)}" for at, tray in trays.items())]
    return SlotResult("done", "; ".join(words), {**_make_facts(report, nodes, file), **links})


def _search_new_nodes(
    context: ControllerContext, task: SlotTask, how: CollectivesSearchSpec, workload: CollectiveWorkload
) -> SlotResult:
    """Search nodes that nobody uses, before they serve. If they are few, idle nodes in service join them."""
    fabric, known = task.line.target, context.fleet.nodes
    states = read_node_states(context.ledger).items()
    names = [name for name, state in states if name in known and state.burn_in and state.burn_in.id in task.burn_ins]
    new = [known[name] for name in names]
    idle = select_idle_nodes(context, fabric, workload).free[: max(0, ENOUGH_NODES - len(new))]
    fabric_map = _map_fabric(context, fabric)
    able = [node for node in new if not find_lacking_part(workload.needs, context.fleet.parts_of(node.name))]
    nodes = [node for node in (*able, *idle) if node.name in fabric_map.nodes]
    if len(nodes) < 2:
        return SlotResult("done", "no other node of its fabric was free for collectives")
    plan = _SearchPlan(str(task), fabric, fabric_map, task.slot, how, workload, frozenset(names))
    file = locate_results(context.home, task)
    file = file.with_stem(f"{file.stem}-{task.attempt}")  # the nodes of a search that was interrupted may be others
    report, _ = _search_and_record(context, plan, nodes, file)
    named = {find_node(culprit.part): f"{culprit.part.name} ({culprit.symptom})" for culprit in report.named}
    suspects = {find_node(part): case.reason for case in report.undecided for part in case.suspects}
    links = {culprit.part.name: culprit.symptom for culprit in report.named if culprit.part.kind == "nvlink"}
    domains = {name: fabric_map.nodes[name].domain for name in names if name in fabric_map.nodes}
    trays = find_suspect_trays(context, report, find_domain_designs(context.fleet))
    suspects |= {
        name: f"nvlink {at} ({links[at]}); {_describe_tray(trays[at])}" for name, at in domains.items() if at in links
    }
    words = f"{len(named)} named" if named else "nobody named"
    facts = {"named_nodes": named, "suspected_nodes": suspects}
    return SlotResult("done", f"{len(nodes)} nodes ran collectives: {words}", facts)


def find_suspect_trays(
    context: ControllerContext, report: CollectivesReport, designs: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the suspect tray of each NVLink domain that is named, "" where it cannot be told, with the reason."""
    names = [culprit.part.name for culprit in report.named if culprit.part.kind == "nvlink"]
    known = {name: context.fleet.designs.get(designs.get(name, "")) for name in names}
    stores = context.ledger, context.evidence
    return {name: read_suspect_tray(context.fleet, *stores, design) for name, design in known.items()}


def _describe_tray(tray: tuple[str, str]) -> str:
    return f"{tray[0]} is suspect: {tray[1]}" if tray[0] else tray[1]


@frozen
class _SearchPlan:
    """A search of one fabric, and by which workload. `new`: nodes that are closed for customers anyway."""

    title: str
    fabric: str
    fabric_map: FabricMap
    at: datetime
    how: CollectivesSearchSpec
    workload: CollectiveWorkload
    new: frozenset[str] = frozenset()


def _search_and_record(
    context: ControllerContext, plan: _SearchPlan, nodes: Sequence[Node], file: Path
) -> tuple[CollectivesReport, Sequence[PairObservation]]:
    """Search, and record faults of what is named, and the end of faults that are disproved."""
    search, results = _run(context, plan, nodes, file)
    report = build_staged_report(search, results)
    observations = search.pair_search(results).observe(results.pairs)
    for rack in search.observe_racks(results):  # few pairs run over NVLink, or none
        domain = FabricPart("nvlink", search.fabric.nodes[rack.nodes[0]].domain)
        pair = make_pair(*rack.nodes[:2])
        observations.append(PairObservation(rack.round, pair, rack.verdict, (domain,), rack.why))
    adapters = name_adapters(context, nodes)
    record_named_parts(context, report, observations, adapters, str(file.relative_to(context.home.parent)))
    return report, observations


def select_idle_nodes(context: ControllerContext, fabric: str, workload: CollectiveWorkload) -> SearchedNodes:
    """Return the nodes for a workload: of the fabric, in service, filled by a scheduler, not used, not kept closed."""
    states = read_node_states(context.ledger)
    pool = [node for node in context.fleet.nodes.values() if node.settings.fabric == fabric]
    pool = [node for node in pool if node.settings.workloads != "none" and node.name in states]
    pool = [node for node in pool if not find_lacking_part(workload.needs, context.fleet.parts_of(node.name))]
    nodes = [node for node in pool if is_in_service(context, states[node.name])]
    statuses = group_by_scheduler(nodes, context.workloads).read_statuses().statuses
    free, left_out = [], []
    for node in nodes:
        status = statuses.get(node.name)
        excluded = find_exclusion(context, states[node.name], status)
        if excluded is None and (reason := _find_use(status)):
            excluded = IdleNodeResult(node.name, "skipped", reason)
        if excluded:
            left_out.append(excluded)
        else:
            free.append(node)
    return SearchedNodes(tuple(free), tuple(left_out))


def locate_results(home: Path, task: SlotTask) -> Path:
    """Return the file with the results of a slot. One that is run again continues there."""
    return home / "collectives" / f"{task.line.name}.{task.line.target}" / f"{task.slot:%Y%m%dT%H%M%S}.jsonl"


def name_adapters(context: ControllerContext, nodes: Sequence[Node]) -> dict[FabricPart, str]:
    """Return the names of the nodes' adapters as their specs have them, such as mlx5_3."""
    return {
        FabricPart("adapter", format_adapter(node.name, rail)): name.rpartition(" ")[2]
        for node in nodes
        for rail, name in enumerate(list_adapter_names(node, context.fleet))
    }


def _run(
    context: ControllerContext, plan: _SearchPlan, nodes: Sequence[Node], path: Path
) -> tuple[StagedSearch, SearchResults]:
    """Run the search, or what is left of one that was interrupted."""
    how, workload = plan.how, plan.workload
    fabric = plan.fabric_map
    used = fabric.nodes.keys() - plan.new
    every = [node for name, node in context.fleet.nodes.items() if name in used]
    watch = CustomerWatch(context, every)  # of all nodes: those of an interrupted search may be in use now
    environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    if conf := next((node.settings.slurm_conf for node in nodes if node.settings.slurm_conf), ""):
        environment["SLURM_CONF"] = conf
    limits = RunLimits(how.at_once, None, environment, watch.find_taker, gpus=context.fleet.gpu_counts)
    runners = make_runners(workload, limits)
    rails = tuple(range(fabric.rails)) if runners.pair.has_rails else ()
    names = tuple(node.name for node in nodes if node.name in fabric.nodes)
    stages, rule = choose_stages(workload, how.whole), make_speed_rule(workload)
    seed = int(plan.at.timestamp()) // 60  # other partners each week
    file = ResultFile(path)
    header, known = file.continue_or_start(SearchHeader(names, seed, plan.fabric, rails, rule, stages))
    for old in sorted(path.parent.glob("*.jsonl"))[:-KEPT_FILES]:
        old.unlink(missing_ok=True)
    search = StagedSearch(fabric, header.nodes, header.seed, header.rule, header.stages)

    def show(name: str, done: int, total: int) -> None:
        if done in (0, total):
            context.progress(f"{plan.title}: round {name}: {done} of {total} runs")

    return search, run_search(search, header.rails, runners, file, known, show)


def _map_fabric(context: ControllerContext, name: str) -> FabricMap:
    topology = compile_topology(context.fleet.designs[name], context.fleet)
    return build_fabric_map(topology, find_nvlink_domains(context.fleet))


def _find_use(status: SchedulerNodeStatus | None) -> str:
    """Return why a node is not ours to use, "" if it is idle and open."""
    if status is None:
        return "its scheduler cannot tell whether it is in use"
    return format_jobs(status.jobs) or (f"cordoned: {status.cordon}" if status.cordon else "")


def _make_skipped_result(how: CollectivesSearchSpec, nodes: SearchedNodes) -> SlotResult:
    idle = format_count(len(nodes.free), "node")
    busy = f" ({format_list(sorted({left.reason for left in nodes.left_out}), 3)})" if nodes.left_out else ""
    reason = (
        f"nothing was searched: {idle} of {len(nodes.free) + len(nodes.left_out)} idle, {how.min_nodes} needed{busy}"
    )
    return SlotResult("done", reason, {"too_few": len(nodes.free)})


def _format_summary(report: CollectivesReport, free: int) -> str:
    parts = [f"{format_count(free, 'idle node')} searched in {len(report.rounds)} rounds"]
    named = [f"{culprit.part.kind} {culprit.part.name} ({culprit.symptom})" for culprit in report.named]
    parts.append(f"{len(named)} named: {format_list(named, 4)}" if named else "nobody named")
    if report.stages.needed_blocks:
        blocks = format_list([block.name for block in report.stages.needed_blocks])
        parts.append(f"fails only with many nodes, among them {blocks}")
    if report.undecided:
        parts.append(f"{len(report.undecided)} could not be told")
    if report.transient:
        parts.append(f"{format_count(len(report.transient), 'pair')} bad once")
    if taken := report.unmeasured.get("not measured: preempted"):
        parts.append(f"{taken} runs gave way to customers")
    return "; ".join([*parts, *(f"exercised {share}" for share in report.coverage.values())])


def _make_facts(report: CollectivesReport, nodes: SearchedNodes, file: Path) -> dict[str, object]:
    """Return what the ledger keeps of a search."""
    by_reason: dict[str, list[str]] = {}
    for left in nodes.left_out:
        by_reason.setdefault(left.reason, []).append(left.node)
    return {
        "results": file.name,
        "coverage": to_json(report.coverage),
        "named": [
            {"kind": culprit.part.kind, "name": culprit.part.name, "symptom": culprit.symptom}
            for culprit in report.named
        ],
        "could_not_tell": len(report.undecided),
        "transient": [pair.label for pair in report.transient],
        "left_out": {reason: fold_names(names) for reason, names in by_reason.items()},
    }


SEARCH_SOURCE = "collectives"
ADAPTER_CLASS = "collective.adapter"
NODE_CLASSES: Mapping[str, str] = {
    "wrong": "collective.node.wrong",
    "hung": "collective.node.stuck",
    "died": "collective.node.stuck",
    "slow": "collective.node.slow",
}
"""The fault class of a node by the worst that it did; the worst stands first in the words of its symptom."""
MIN_GOOD = 2
"""So many good pairs end a fault."""
SHOWN_PAIRS = 4


def record_named_parts(
    context: ControllerContext,
    report: CollectivesReport,
    observations: Sequence[PairObservation],
    adapters: Mapping[FabricPart, str],
    results: str,
) -> int:
    """Append the faults of named nodes and adapters, and the ends of faults that the pairs disprove. Return how many.

    `adapters` are the names of adapters as their nodes' specs have them; `results` is the file with all results.
    """
    proven = find_proven_parts(report, observations)
    with context.hold_fault_lock():
        states, now = read_node_states(context.ledger), context.clock.now()
        most, catalog = context.policy.intake.node.open_faults, context.fleet.fault_catalog
        sightings: dict[str, list[FaultSighting]] = {}
        for named in report.named:
            name = find_node(named.part)
            if named.part.kind in ("node", "adapter") and name in states and name in context.fleet.nodes:
                sighting = _make_sighting(named, adapters.get(named.part, ""), format_time(now), results)
                sightings.setdefault(name, []).append(sighting)
        faults = [
            fault
            for name, own in sightings.items()
            for fault in count_sightings(catalog, context.fleet.nodes[name], states[name], own, most)
        ]
        ends = list(_find_ends(states, proven, adapters, report))
        context.ledger.append(
            *(make_fault_entry(fault, now) for fault in faults),
            *(make_cleared_entry(name, end, now) for name, end in ends),
        )
    return len(faults)


def find_proven_parts(report: CollectivesReport, observations: Sequence[PairObservation]) -> dict[FabricPart, int]:
    """Return the parts that the search proves good, with the number of their good pairs: none was bad, none is open."""
    good: dict[FabricPart, int] = {}
    doubtful = {part for pair in observations if pair.is_bad for part in pair.parts}
    doubtful |= {named.part for named in report.named}
    doubtful |= {part for case in report.undecided for part in case.suspects}
    if report.stages.alone:
        doubtful |= {FabricPart("node", name) for name in report.stages.alone.once}
    for pair in observations:
        for part in pair.parts if pair.verdict == "good" else ():
            good[part] = good.get(part, 0) + 1
    return {part: count for part, count in good.items() if count >= MIN_GOOD and part not in doubtful}


def _make_sighting(named: NamedPart, adapter: str, at: str, results: str) -> FaultSighting:
    is_adapter = named.part.kind == "adapter"
    fault_class = ADAPTER_CLASS if is_adapter else NODE_CLASSES[named.symptom.replace(",", " ").split()[0]]
    part = (adapter or named.part.name.partition(" ")[2]) if is_adapter else ""
    runs = format_list([f"{run.round} {run.label}: {run.why}" for run in named.evidence], SHOWN_PAIRS)
    detail = f"{named.symptom}; bad in {len(named.evidence)} of {named.tests} runs ({runs}); {results}"
    return FaultSighting(fault_class, part, at, detail, SEARCH_SOURCE, at)


def _find_ends(
    states: Mapping[str, NodeState],
    proven: Mapping[FabricPart, int],
    adapters: Mapping[FabricPart, str],
    report: CollectivesReport,
) -> Iterator[tuple[str, FaultClearedEntry]]:
    """Yield the ends of open faults whose part was good in this search. A fault that moved its node stays."""
    names = {(find_node(part), adapters.get(part, "") or part.name.partition(" ")[2]): part for part in proven}
    named: Collection[str] = {find_node(culprit.part) for culprit in report.named}
    for (node, adapter), part in names.items():
        for fault in states[node].faults if node in states and node not in named else ():
            is_ours = fault.is_open and fault.response != "acted" and set(fault.marks) == {SEARCH_SOURCE}
            if is_ours and read_part(fault.subject) == (adapter if part.kind == "adapter" else ""):
                reason = f"a search with collectives saw {part.name} good in {proven[part]} runs, and never bad"
                yield node, make_clearance(fault, reason)
