"""One rack as it stands: which node is in which units, and the tickets for work there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay.model.fleet import Fleet
from assay.model.ticket import TicketPlace, TicketRecord
from assay.tell.views.fleet_view import FleetFilter, NodeOnMap, RackOnMap, group_by_site


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class RackPicture:
    """A rack for a person who stands before it, the highest unit first."""

    site: str
    name: str
    slots: tuple[RackSlot, ...]


def find_racks(cells: Iterable[NodeOnMap], name: str, site: str = "") -> list[RackOnMap]:
    """Return the racks of this name, of one site or of all ("")."""
    found = group_by_site(FleetFilter(rack=name, site=site).select(cells))
    return [rack for racks in found.values() for rack in racks]


def draw_rack(fleet: Fleet, rack: RackOnMap, marked: Iterable[TicketPlace] = ()) -> RackPicture:
    """Return the picture of a rack, with the places of a ticket that are in it."""
    here = [one for one in marked if _is_in(one, rack)]
    names = {one.device for one in here}
    slots = {
        node.name: RackSlot(node.u, fleet.spec_of(node.name).height_u, node.name, node, node.name in names)
        for node in rack.nodes
    }
    for one in here:
        slots.setdefault(one.device, RackSlot(one.u, 1, one.device, is_marked=True))
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
    every, in_racks = list(cells), [one for one in places if one.rack]
    pictures = []
    for site, name in dict.fromkeys((one.site, one.rack) for one in in_racks):
        racks = find_racks(every, name, site) or [RackOnMap(site, name, (), {})]
        pictures.append(draw_rack(fleet, racks[0], in_racks))
    return pictures


def select_rack_tickets(tickets: Iterable[TicketRecord], rack: RackOnMap) -> list[TicketRecord]:
    """Return the open tickets with work in a rack."""
    return [one for one in tickets if not one.closed_at and any(_is_in(place, rack) for place in one.ticket.places)]


def _is_in(place: TicketPlace, rack: RackOnMap) -> bool:
    return place.rack == rack.name and place.site in ("", rack.site)
