"""What the verbs of `assay collectives` work on: the fabric's map, and the nodes that are free."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.adapters.scheduler_adapter import load_scheduler_adapter
from assay.adapters.status_readings import StatusReadings, group_by_scheduler
from assay.cli.name_check import require_known
from assay.cli.verbs.dump_file import read_dump
from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.specs.collective_workload import CollectiveCommand, CollectiveWorkload
from assay.model.text.text_lists import suggest_nearest
from assay.validate.collectives.cpu_workload import parse_plant
from assay.validate.collectives.fabric_map import FabricMap
from assay.validate.collectives.fabric_map_building import add_routes, build_fabric_map, find_nvlink_domains
from assay.validate.collectives.free_nodes import FreeNodes, select_free_nodes
from assay.validate.collectives.pair_command import CommandTemplate


@dataclass(frozen=True, slots=True)
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
    found = build_fabric_map(topology, find_nvlink_domains(fleet))
    if routes:
        from assay.fabric.readers.forwarding_tables import read_forwarding_tables

        found = add_routes(found, topology, read_forwarding_tables(read_dump(routes)).tables)
    return SearchedFabric(found, name)


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


def choose_workload(workspace: Workspace, name: str, command: str, deadline_s: float) -> CollectiveWorkload:
    """Return a declared workload, or the command of a pair as one. Raises AssayError if there is none, or both."""
    known = workspace.fleet.collective_workloads
    if not (name or command):
        fix = f"name one of {', '.join(known) or 'specs/collectives/'}, give a --command, or try it with --cpu"
        raise AssayError("nothing says how to run a collective", where="--workload", fix=fix)
    if name and command:
        raise AssayError("a workload and a command are both given", where="--workload", fix="leave one of them out")
    if name and name not in known:
        fix = suggest_nearest(name, known) or f"there are {', '.join(known) or 'none'}"
        raise AssayError(f"no CollectiveWorkload is called {name}", where="--workload", fix=fix)
    if name:
        return known[name]
    pair = CollectiveCommand(command=list(CommandTemplate.parse(command).words), deadline_seconds=deadline_s)
    return CollectiveWorkload(kind="CollectiveWorkload", name="command", sources=["--command"], pair=pair)


def require_folders(file: Path, scratch: Path | None) -> None:
    """Raise AssayError if results cannot go to `file`, or if the folder for reports is missing."""
    if file.is_dir():
        raise AssayError("the results go into a file, and this is a folder", where=str(file), fix="name a file in it")
    if scratch and not scratch.is_dir():
        fix = "make it where the nodes and this machine see it, or name another one"
        raise AssayError("there is no such folder", where=f"--scratch {scratch}", fix=fix)


def require_met(plants: Sequence[str], nodes: Collection[str], *, cpu: bool, rails: bool) -> None:
    """Raise AssayError for a fault that no run would meet, and for rails of which no command is told."""
    if rails and not cpu:
        raise AssayError("it is for --cpu", where="--rails", fix="add --cpu, or write {rail} into the command")
    if plants and not cpu:
        raise AssayError("faults are planted on this machine only", where="--plant", fix="add --cpu")
    for plant in map(parse_plant, plants):
        require_known([name for name in (plant.first, plant.second) if name], nodes, "node in this search called")
        if plant.where.isdecimal() and not rails:
            where = f"--plant {plant.first}:{plant.where}={plant.fault}"
            raise AssayError("no run is of this rail", where=where, fix="add --rails, which runs each rail apart")


def require_two(nodes: FreeNodes) -> None:
    """Raise AssayError if there is no pair."""
    if len(nodes.free) < 2:
        reasons = "; ".join(f"{', '.join(names[:3])}: {why}" for why, names in nodes.names_by_reason.items())
        fix = "`assay collectives plan` shows why each node is not free"
        raise AssayError(f"a pair needs two free nodes, and there are {len(nodes.free)} ({reasons})", fix=fix)
