"""The fleet as it stands: every rack with its nodes, how each stands, how many stand so; and the tickets of a rack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from assay.decide.state.node_state import NodeState
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.text.lists import sort_naturally
from assay.model.ticket import TicketPlace, TicketRecord
from assay.tell.views.hosts import judge_health
from assay.tell.views.node_status import STANDINGS, ServiceCount, Standing, count_service, find_standing


@frozen
class NodeOnMap:
    """One node on the map. `since` is ISO 8601 UTC, `reason` that of its state; both "" if it was never observed.

    `has_fault`: a fault is open. `unjudged`: how many of its errors no class of faults has. `unread_since`: when it was
    last read, if that is so long ago that it is not known, "" for never. `in_service`: by its state, known or not.
    `is_healthy`: as the API and Prometheus tell it.
    """

    name: str
    pool: str
    site: str
    rack: str
    u: int
    standing: Standing
    state: str = ""
    since: str = ""
    reason: str = ""
    has_fault: bool = False
    unjudged: int = 0
    unread_since: str | None = None
    in_service: bool = False
    is_healthy: bool = False


@frozen
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


@frozen
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
            has_text = self.text in cell.name or self.text in cell.rack
            if has_text and all(getattr(cell, name) == value for name, value in wanted):
                yield cell


NO_FILTER = FleetFilter()


@frozen
class FleetView:
    """What is shown of a fleet. `sites` has the racks of each site, in the order of their names' numbers.

    `pools`, `states`: how many of all nodes are in each, whatever the filter is.
    """

    name: str
    commit: str
    dirty: bool
    total: int
    shown: int
    service: ServiceCount
    counts: Mapping[Standing, int]
    pools: Mapping[str, int]
    states: Mapping[str, int]
    sites: Mapping[str, tuple[RackOnMap, ...]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    """When each node was last read that is shown and not known, "" for never."""
    unjudged: tuple[int, int] = (0, 0)
    """How many errors no class of faults has, and on how many of the nodes that are shown."""
    gpus: tuple[int, int] = (0, 0)
    """How many GPUs the nodes in service have that are shown, and how many of these are on healthy ones."""


def list_cells(
    fleet: Fleet,
    states: Iterable[NodeState],
    unread: Mapping[str, str] = MappingProxyType({}),
    nodes: Iterable[Node] | None = None,
    read: Collection[str] = (),
) -> list[NodeOnMap]:
    """Return `nodes`, or every one of the inventory. `unread` and `read`: as in judge_health, with the last reading."""
    known, shown = {state.node: state for state in states}, fleet.nodes.values() if nodes is None else nodes
    return [_make_cell(fleet, node, known.get(node.name), unread, read) for node in shown]


def _make_cell(
    fleet: Fleet, node: Node, state: NodeState | None, unread: Mapping[str, str], read: Collection[str]
) -> NodeOnMap:
    place = (node.name, node.pool, node.site, node.rack, node.u)
    if state is None:
        return NodeOnMap(*place, find_standing(None, None))
    policy = fleet.policy_of_state.get(state.state)
    standing = find_standing(state, policy, is_unread=node.name in unread)
    in_service, reason = bool(policy and policy.is_in_service(state.state)), state.note or state.reason
    is_healthy = judge_health(fleet, state, unread, read) == "healthy"
    known = (reason, bool(state.open_faults), state.unjudged, unread.get(node.name), in_service)
    return NodeOnMap(*place, standing, state.state, state.since, *known, is_healthy=is_healthy)


def build_fleet_view(fleet: Fleet, cells: Sequence[NodeOnMap], wanted: FleetFilter = NO_FILTER) -> FleetView:
    """Return the view of the nodes that match the filter; `cells` are all nodes."""
    shown = list(wanted.select(cells))
    serving = [(fleet.spec_of(cell.name).gpus.count, cell) for cell in shown if cell.in_service]
    return FleetView(
        name=fleet.root.name,
        commit=fleet.commit,
        dirty=fleet.dirty,
        total=len(cells),
        shown=len(shown),
        service=count_service((cell.in_service, cell.unread_since is not None) for cell in shown),
        counts=_count_standings(shown),
        pools=Counter(cell.pool for cell in cells),
        states=Counter(cell.state for cell in cells if cell.state),
        sites=group_by_site(shown),
        unread=tuple(cell.unread_since for cell in shown if cell.unread_since is not None),
        gpus=(sum(count for count, _ in serving), sum(count for count, cell in serving if cell.is_healthy)),
        unjudged=(sum(cell.unjudged for cell in shown), sum(cell.unjudged > 0 for cell in shown)),
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


@frozen
class RackSlot:
    """Something in a rack, `height` units from its unit `u` upwards; units count from the bottom.

    `node` is None for a device that is no node, and for units (label "") in which the inventory has nothing.
    `is_marked`: the work of a ticket is there.
    """

    u: int
    height: int
    label: str
    node: NodeOnMap | None = None
    is_marked: bool = False


@frozen
class RackPicture:
    """A rack for a person who stands before it, the highest unit first."""

    site: str
    name: str
    slots: tuple[RackSlot, ...]


def find_racks(cells: Iterable[NodeOnMap], name: str, site: str = "") -> list[RackOnMap]:
    """Return the racks of this name, of one site or of all ("")."""
    sites = group_by_site(FleetFilter(rack=name, site=site).select(cells))
    return [rack for racks in sites.values() for rack in racks]


def draw_rack(fleet: Fleet, rack: RackOnMap, marked: Iterable[TicketPlace] = ()) -> RackPicture:
    """Return the picture of a rack, with the places of a ticket that are in it."""
    here = [place for place in marked if _is_in(place, rack)]
    names = {place.device for place in here}
    slots = {
        node.name: RackSlot(node.u, fleet.spec_of(node.name).height_u, node.name, node, node.name in names)
        for node in rack.nodes
    }
    for place in here:
        slots.setdefault(place.device, RackSlot(place.u, 1, place.device, is_marked=True))
    ordered = sorted(slots.values(), key=lambda slot: (-slot.u, slot.label))
    return RackPicture(rack.site, rack.name, tuple(_fill_gaps(ordered)))


def _fill_gaps(slots: Iterable[RackSlot]) -> Iterator[RackSlot]:
    """Yield the slots from the top, with one more for the units between two of them."""
    below = 0
    for slot in slots:
        top = slot.u + slot.height
        if top < below:
            yield RackSlot(top, below - top, "")
        yield slot
        below = slot.u


def draw_ticket_racks(fleet: Fleet, cells: Iterable[NodeOnMap], places: Iterable[TicketPlace]) -> list[RackPicture]:
    """Return a picture of each rack in which a ticket has work, in the order of its places."""
    every, in_racks = list(cells), [place for place in places if place.rack]
    pictures = []
    for site, name in dict.fromkeys((place.site, place.rack) for place in in_racks):
        racks = find_racks(every, name, site) or [RackOnMap(site, name, (), {})]
        pictures.append(draw_rack(fleet, racks[0], in_racks))
    return pictures


def select_rack_tickets(tickets: Iterable[TicketRecord], rack: RackOnMap) -> list[TicketRecord]:
    """Return the open tickets with work in a rack."""
    return [
        record
        for record in tickets
        if not record.closed_at and any(_is_in(place, rack) for place in record.ticket.places)
    ]


def _is_in(place: TicketPlace, rack: RackOnMap) -> bool:
    return place.rack == rack.name and place.site in ("", rack.site)
