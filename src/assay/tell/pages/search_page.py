"""Finds what somebody types into the field of every page: the name, serial number, GUID or id of a thing."""

from __future__ import annotations

from collections.abc import Iterator
from string import hexdigits
from typing import NamedTuple

from starlette.exceptions import HTTPException

from assay.decide.faults.incidents import list_incidents
from assay.decide.state.asset_history import list_serial_stays
from assay.model.entries.assets import PartReplacedEntry, PartsSeenEntry
from assay.tell.pages.fabric_pages import find_address
from assay.tell.pages.page_frame import PageRequest, link, place, render_frame
from assay.tell.views.machine_list import build_machine_list
from assay.tell.views.records import LiveRecords

SHOWN, LEAST_LETTERS = 50, 2


class Found(NamedTuple):
    """A thing: by what it is found, what it is, its name, a line about it, and the address of its page."""

    key: str
    kind: str
    name: str
    detail: str
    address: str


def render_search_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page of what was found. Raises a redirect to the only thing that is meant."""
    text = request.query.get("text", "").strip()
    matches = find_things(records, text)
    if len(matches) == 1:
        raise HTTPException(303, "found", {"Location": matches[0].address})
    return render_frame("search.html.j2", request, text=text, matches=matches, shown=SHOWN, least=LEAST_LETTERS)


def find_things(records: LiveRecords, text: str) -> list[Found]:
    """Return what has the text in its name or number; only what has it whole, if there is such a thing.

    The history of parts is read only for a text that nothing else has.
    """
    wanted = _reduce(text)
    if len(wanted) < LEAST_LETTERS:
        return []
    things = [*_list_places(records, wanted), *_list_work(records, wanted), *_list_machines(records)]
    matches = [thing for thing in things if wanted in _reduce(thing.key)]
    matches = matches or [*_list_devices(records, wanted)] or [*_list_stays(records, text)]
    exact = [thing for thing in matches if _reduce(thing.key) == wanted] or sorted(matches)
    return [*{thing.address: thing for thing in exact}.values()]


def _reduce(text: str) -> str:
    """Return a text as it is compared: a GUID is written with and without `0x` and colons."""
    return text.lower().removeprefix("0x").replace(":", "")


def _list_places(records: LiveRecords, wanted: str) -> Iterator[Found]:
    """Yield nodes that have the wanted text in their name or serial number, racks and pools."""
    nodes = records.fleet.nodes.values()
    for node in nodes:
        for key in (node.name, node.serial):
            if wanted in _reduce(key):
                line = f"{node.site} rack {node.rack} U{node.u}, pool {node.pool}, serial {node.serial}"
                yield Found(key, "node", node.name, line, place("nodes", node.name))
    for site, rack in sorted({(node.site, node.rack) for node in nodes}):
        yield Found(rack, "rack", rack, site, place("racks", rack, site=site))
    for pool in sorted({node.pool for node in nodes}):
        yield Found(pool, "pool", pool, "", place("pools", pool))


def _list_work(records: LiveRecords, wanted: str) -> Iterator[Found]:
    """Yield nodes that left the inventory, tickets, incidents (if the wanted text may be an id) and rollouts."""
    catalog = records.fleet.sound_fault_catalog if {*wanted} <= {*hexdigits} else None
    for state in records.read_node_states():
        page = place("nodes", state.node)
        if state.node not in records.fleet.nodes:
            yield Found(state.node, "node", state.node, "no longer in the inventory", page)
        for incident in list_incidents(catalog.fault_relations, state) if catalog and state.faults else ():
            line = f"{state.node}: {incident.work.fault_class}{'' if incident.is_open else ', ended'}"
            yield Found(incident.id, "incident", incident.id, line, f"{page}#incident-{incident.id}")
    for record in records.read_tickets():
        ident, ended = record.ticket.id, ", closed" if record.closed_at else ""
        yield Found(ident, "ticket", ident, f"{record.ticket.title}{ended}", place("tickets", ident))
    for rollout in records.read_rollouts().rollouts.values():
        yield Found(rollout.id, "rollout", rollout.id, rollout.status, place("rollouts", rollout.id))


def _list_machines(records: LiveRecords) -> Iterator[Found]:
    """Yield machines that are no nodes, by serial number."""
    for machine in build_machine_list(records.fleet, records.read_machines(), records.ledger_for_reading).machines:
        if machine.verdict != "node" and (serial := machine.seen.serial):
            yield Found(serial, "machine", serial, machine.describe(), link("/machines", text=serial))


def _list_devices(records: LiveRecords, wanted: str) -> Iterator[Found]:
    """Yield adapters and switches that have the wanted text in their name or GUID."""
    for topology in records.read_topologies():
        for device in topology:
            for key in (device.guid, device.name):
                if wanted in _reduce(key):
                    line = f"{device.site} {device.rack}, GUID {device.guid}"
                    yield Found(key, device.kind, device.name, line, find_address(device.end(1)))


def _list_stays(records: LiveRecords, serial: str) -> Iterator[Found]:
    """Yield the nodes in which a part of this serial number was."""
    entries = records.ledger_for_reading.entries(kinds=[PartsSeenEntry.kind, PartReplacedEntry.kind])
    for stay in list_serial_stays(entries, serial):
        until = f", until {stay['until'][:16]}" if stay["until"] else ""
        line = f"{stay['kind']} {serial} at {stay['place'] or 'the node'}, since {stay['since'][:16]}{until}"
        yield Found(serial, "part", stay["node"], line, place("nodes", stay["node"]))
