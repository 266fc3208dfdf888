"""What the verbs of `assay collectives` work on: the fabric's map, and the nodes that are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.cli.name_check import require_known
from assay.cli.recorded_node_states import load_node_states
from assay.cli.workspace import Workspace
from assay.collectives.fabric_map import FabricMap
from assay.collectives.fabric_map_building import add_routes, build_fabric_map, find_nvlink_domains
from assay.collectives.free_nodes import FreeNodes, select_free_nodes
from assay.collectives.runner.pair_command import CommandTemplate
from assay.model.errors import AssayError
from assay.model.load.collective_workload import CollectiveCommand, CollectiveWorkload
from assay.model.text_lists import suggest_nearest
from assay.schedulers.scheduler_adapter import load_scheduler_adapter
from assay.schedulers.status_readings import StatusReadings, group_by_scheduler


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
    from assay.fabric.topology.topology_cache import load_topology, select_design

    name = select_design(fleet, design).name
    topology = load_topology(workspace.root, name, workspace.overlays)
    found = build_fabric_map(topology, find_nvlink_domains(fleet))
    if routes:
        from assay.fabric.readers.forwarding_tables import read_forwarding_tables

        try:
            text = routes.read_text(errors="replace")
        except OSError as error:
            raise AssayError(f"the routes cannot be read: {error.strerror}", where=str(routes)) from None
        found = add_routes(found, topology, read_forwarding_tables(text))
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
        state.node: f"{state.hold.reason} ({state.hold.who})" for state in load_node_states(workspace) if state.hold
    }
    return select_free_nodes(list(fabric.nodes), set(names), readings, holds)


def choose_workload(workspace: Workspace, name: str, command: str, deadline_s: float) -> CollectiveWorkload:
    """Return a declared workload, or the command of a pair as one. Raises AssayError if there is none, or both."""
    known = workspace.fleet.collective_workloads if name else {}
    if name and command:
        raise AssayError("a workload and a command are both given", where="--workload", fix="leave one of them out")
    if name and name not in known:
        fix = suggest_nearest(name, known) or f"there are {', '.join(known) or 'none'}"
        raise AssayError(f"no CollectiveWorkload is called {name}", where="--workload", fix=fix)
    if name:
        return known[name]
    pair = CollectiveCommand(command=list(CommandTemplate.parse(command).words), deadline_seconds=deadline_s)
    return CollectiveWorkload(kind="CollectiveWorkload", name="command", sources=["--command"], pair=pair)


def require_two(nodes: FreeNodes) -> None:
    """Raise AssayError if there is no pair."""
    if len(nodes.free) < 2:
        reasons = "; ".join(f"{', '.join(names[:3])}: {why}" for why, names in nodes.names_by_reason.items())
        fix = "`assay collectives plan` shows why each node is not free"
        raise AssayError(f"a pair needs two free nodes, and there are {len(nodes.free)} ({reasons})", fix=fix)
