"""The fleet as it stands: every rack with its nodes, how each stands, and how many stand so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.decide.state.node_state import NodeState
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.text_lists import sort_naturally
from assay.tell.views.node_standing import STANDINGS, Standing, find_standing


@dataclass(frozen=True, slots=True)
class NodeOnMap:
    """One node on the map. `since` is ISO 8601 UTC, `why` the reason of its state; both "" if it was never observed.

    `has_fault`: a fault is open that no repair has answered. `waits_for` are the jobs that it waits for.
    """

    name: str
    pool: str
    site: str
    rack: str
    u: int
    standing: Standing
    state: str = ""
    since: str = ""
    why: str = ""
    has_fault: bool = False
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RackOnMap:
    """A rack with its nodes, the highest unit first, and how many of them stand how."""

    site: str
    name: str
    nodes: tuple[NodeOnMap, ...]
    counts: Mapping[Standing, int]

    @property
    def has_fault(self) -> bool:
        """Whether a node of it has an open fault."""
        return any(node.has_fault for node in self.nodes)

    @property
    def is_well(self) -> bool:
        """Whether all its nodes serve, none with an open fault."""
        return self.counts.get("serving", 0) == len(self.nodes) and not self.has_fault


@dataclass(frozen=True, slots=True)
class FleetFilter:
    """Which nodes are shown: "" leaves a field open. `text` is a part of the name of a node or a rack."""

    site: str = ""
    pool: str = ""
    rack: str = ""
    state: str = ""
    standing: str = ""
    text: str = ""

    def select(self, cells: Iterable[NodeOnMap]) -> Iterator[NodeOnMap]:
        """Yield the nodes that match every field."""
        names = ("site", "pool", "rack", "state", "standing")
        wanted = [(name, value) for name in names if (value := getattr(self, name))]
        for cell in cells:
            if all(getattr(cell, name) == value for name, value in wanted) and self._has_text(cell):
                yield cell

    def _has_text(self, cell: NodeOnMap) -> bool:
        return not self.text or self.text in cell.name or self.text in cell.rack


NO_FILTER = FleetFilter()


@dataclass(frozen=True, slots=True)
class FleetView:
    """What is shown of a fleet. `sites` has the racks of each site, in the order of their names' numbers.

    `pools`, `states`: how many of all nodes are in each, whatever the filter is.
    """

    name: str
    commit: str
    dirty: bool
    total: int
    shown: int
    counts: Mapping[Standing, int]
    pools: Mapping[str, int]
    states: Mapping[str, int]
    sites: Mapping[str, tuple[RackOnMap, ...]] = field(default_factory=dict)


def list_cells(fleet: Fleet, states: Iterable[NodeState]) -> list[NodeOnMap]:
    """Return every node of the inventory, in its order."""
    policies = {name: policy for policy in fleet.policies.values() for name in policy.states}
    known = {state.node: state for state in states}
    return [_make_cell(node, known.get(node.name), policies) for node in fleet.nodes.values()]


def _make_cell(node: Node, state: NodeState | None, policies: Mapping[str, LifecyclePolicy]) -> NodeOnMap:
    place = (node.name, node.pool, node.site, node.rack, node.u)
    if state is None:
        return NodeOnMap(*place, find_standing(None, None))
    standing = find_standing(state, policies.get(state.state))
    has_fault = any(fault.is_open and not state.is_repaired(fault) for fault in state.faults)
    blockers = state.pending.blockers if state.pending else ()
    return NodeOnMap(*place, standing, state.state, state.since, state.note or state.reason, has_fault, blockers)


def build_fleet_view(fleet: Fleet, cells: Sequence[NodeOnMap], wanted: FleetFilter = NO_FILTER) -> FleetView:
    """Return the view of the nodes that match the filter; `cells` are all nodes."""
    shown = list(wanted.select(cells))
    return FleetView(
        name=fleet.root.name,
        commit=fleet.commit,
        dirty=fleet.dirty,
        total=len(cells),
        shown=len(shown),
        counts=_count_standings(shown),
        pools=Counter(cell.pool for cell in cells),
        states=Counter(cell.state for cell in cells if cell.state),
        sites=group_by_site(shown),
    )


def group_by_site(cells: Iterable[NodeOnMap]) -> dict[str, tuple[RackOnMap, ...]]:
    """Return the racks of each site, in the order of the numbers in their names."""
    racks: dict[tuple[str, str], list[NodeOnMap]] = {}
    for cell in cells:
        racks.setdefault((cell.site, cell.rack), []).append(cell)
    sites: dict[str, list[RackOnMap]] = {}
    for site, rack in sorted(racks, key=lambda place: (place[0], sort_naturally(place[1]))):
        nodes = sorted(racks[site, rack], key=lambda cell: (-cell.u, cell.name))
        sites.setdefault(site, []).append(RackOnMap(site, rack, tuple(nodes), _count_standings(nodes)))
    return {site: tuple(views) for site, views in sites.items()}


def _count_standings(cells: Iterable[NodeOnMap]) -> dict[Standing, int]:
    counts = Counter(cell.standing for cell in cells)
    return {standing: counts[standing] for standing in STANDINGS if counts[standing]}
