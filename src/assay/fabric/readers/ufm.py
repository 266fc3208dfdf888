"""Reads what NVIDIA UFM tells of a fabric: the links and ports of its REST interface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from assay.fabric.discovery import (
    DiscoveredCable,
    DiscoveredDevice,
    FabricDiscovery,
    LocalProblem,
    PortFacts,
    merge_port_facts,
)
from assay.fabric.link_words import SPEEDS, parse_port_state, parse_rate, rate_from_lanes
from assay.fabric.readers.link_end_matching import PortEnds, check_has_cables, format_port, join_ends
from assay.fabric.readers.tool_text import find_stderr_problems, load_json
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid

SIDES = ("source", "destination")
NAME = re.compile("([0-9a-fA-F]{1,16})_([0-9]{1,5}):([0-9a-fA-F]{1,16})_([0-9]{1,5})")
HOST_PORT = re.compile(r"HCA-\w+/[0-9]+")
PORT = re.compile("(?:0x)?([0-9a-fA-F]{1,16})_([0-9]{1,5})")
RESOURCES = ("links", "ports")
PORT_FIELDS = {"peer", "physical_state", "dname"}


def read_links(links: Sequence[Any]) -> FabricDiscovery:
    """Read a list of links. Never raises: `problems` names what cannot be read.

    ```
    links = "[" { link } "]"                                   (JSON)
    link  = { "source_guid": guid, "source_port": n, "destination_guid": guid, "destination_port": n, ... }
    ```

    `name` repeats the four (`GUID_PORT:GUID_PORT`). Optional fields are `width` (`4x`, earlier `IB_4x`) with `speed` or
    `active_speed`; the labels `source_port_dname` and `destination_port_dname`; and, as hints, the descriptions
    `source_port_node_description` and `destination_port_node_description`. Not read: `severity`, `capabilities`, and
    what `cable_info` and `monitoring_counters_info` add.

    The documented versions of UFM list no speed. Then a cable's rate is empty, and the text cannot show whether it is
    as designed. A link is listed once, and there is no count, so a link that UFM left out goes unnoticed. A text that
    is cut off does not. The ports of UFM (`read_ports`) tell both.
    Source: NVIDIA UFM Enterprise REST API 6.11 to 6.20, Links; public plugins that read it.
    """
    problems: list[str] = []
    devices: dict[str, DiscoveredDevice] = {}
    ends: dict[PortId, DiscoveredCable] = {}
    facts: dict[PortId, PortFacts] = {}
    for index, link in enumerate(links, start=1):
        a, b = (_end(link, side, devices, facts) for side in SIDES)
        if not a or not b:
            problems.append(f"link {index} has no GUID or port at one end")
            continue
        if not _is_named_so(link, {a, b}):
            problems.append(f"link {index} does not match its name")
        cable = DiscoveredCable(a, b, rate_of(link, "width", "active_speed", "speed"))
        for port in (a, b):
            if port in ends and set(ends[port][:2]) != {a, b}:
                problems.append(f"{format_port(port)} has two links")
        ends[a] = ends[b] = cable
    cables = list(dict.fromkeys(ends.values()))
    return FabricDiscovery(cables, devices, (*problems, *find_rate_gaps(cables)), facts)


def find_rate_gaps(cables: Sequence[DiscoveredCable]) -> list[str]:
    """Return a problem if some cables have a rate and others none. Without any, the version of UFM tells none."""
    without_rate = sum(not cable.rate for cable in cables)
    return [f"{without_rate} of {len(cables)} links have no rate"] if 0 < without_rate < len(cables) else []


def _is_named_so(link: dict[str, Any], ends: set[PortId]) -> bool:
    """Return whether the link's name, if it has one of GUIDs and ports, has these ends."""
    name = NAME.fullmatch(str(link.get("name", "")))
    return not name or ends == {
        PortId(normalize_guid(name[1]), int(name[2])),
        PortId(normalize_guid(name[3]), int(name[4])),
    }


def _end(link: Any, side: str, devices: dict[str, DiscoveredDevice], facts: dict[PortId, PortFacts]) -> PortId | None:
    """Return one end of a link, and add its device and label."""
    if not isinstance(link, dict):
        return None
    digits = re.fullmatch("(?:0x)?([0-9a-fA-F]{1,16})", str(link.get(f"{side}_guid", "")))
    number = re.fullmatch("[0-9]{1,5}", str(link.get(f"{side}_port", "")))
    if not digits or not number:
        return None
    port = PortId(normalize_guid(digits[1]), int(number[0]))
    label = str(link.get(f"{side}_port_dname", ""))
    known = devices.get(port.guid)
    ports = max(port.number, known.ports if known else 0)
    description = strip_port(str(link.get(f"{side}_port_node_description", "")))
    devices[port.guid] = DiscoveredDevice(port.guid, guess_kind(label, port.number), ports, description)
    facts[port] = PortFacts(port, label=label.rpartition(":")[2])
    return port


def guess_kind(label: str, number: int) -> DeviceKind:
    """Return the kind of a device by the label of its port."""
    return "hca" if HOST_PORT.fullmatch(label) or (not label and number == 1) else "switch"


def strip_port(description: str) -> str:
    """Return the device's name: UFM appends a switch's port to it (`leaf-1:33`, `name:L16/U2/20`)."""
    return re.sub(r":[0-9LU/]+$", "", description.strip())


def rate_of(entry: dict[str, Any], width_field: str, *speed_fields: str) -> str:
    """Return the rate in an entry's width and the first of these speeds that it has, "" if it has none."""
    width = str(entry.get(width_field, "")).removeprefix("IB_")
    speed = next((str(entry[field]).upper() for field in speed_fields if entry.get(field)), "")
    if speed in SPEEDS:
        rate = f"{width}{speed}"
        return rate if parse_rate(rate) else ""
    return rate_from_lanes(width, speed)


def read_ports(ports: Sequence[Any]) -> FabricDiscovery:
    """Read a list of ports. Never raises: `problems` names what cannot be read.

    ```
    ports = "[" { port } "]"                                   (JSON)
    port  = { "name": guid_port, "peer": guid_port | "N/A", ... }
    guid_port = guid "_" number
    ```

    Read: `name` and `peer` (where the cable leads), `active_width` and `active_speed` (`4x`, `NDR`), `physical_state`
    (`Link Up`, `Polling`, `Disabled`), `logical_state` (`Active`), `dname` (the label), `node_description`, and
    `description` (`Switch IB Port`, `Computer IB Port`). Not read: `lid`, `mtu`, enabled and supported speeds,
    `severity`, alarms, `path`, and what `cable_info` adds.

    Each cable stands twice, at both of its ends, so a port that is left out shows. `name` of an adapter has the GUID of
    its port, which differs from that of the device on adapters with several ports: no answer of UFM tells both.
    Source: NVIDIA UFM Enterprise REST API, Ports; NVIDIA's plugins for UFM, and public clients that read it.
    """
    problems: list[str] = []
    devices: dict[str, DiscoveredDevice] = {}
    ends: PortEnds = {}
    facts: dict[PortId, PortFacts] = {}
    for index, entry in enumerate(ports, start=1):
        here = _find_port(entry, "name")
        if here is None:
            problems.append(f"port {index} has no `name` such as GUID_PORT")
            continue
        if here in facts:
            problems.append(LocalProblem(f"{format_port(here)} is listed twice", here.guid))
        state, physical = parse_port_state(str(entry.get("logical_state", "")), str(entry.get("physical_state", "")))
        label = str(entry.get("dname", "")).rpartition(":")[2]
        facts[here] = PortFacts(here, state, physical, rate_of(entry, "active_width", "active_speed"), label=label)
        devices[here.guid] = _read_device(here, entry, devices.get(here.guid))
        if there := _find_port(entry, "peer"):
            ends[here] = (there, facts[here].rate)
        elif facts[here].physical == "linkup":
            problems.append(LocalProblem(f"{format_port(here)} is up, and its `peer` is not told", here.guid))
    cables = join_ends(ends, devices, problems)
    return FabricDiscovery(cables, devices, (*problems, *find_rate_gaps(cables)), facts)


def _find_port(entry: Any, field: str) -> PortId | None:
    match = PORT.fullmatch(str(entry.get(field, ""))) if isinstance(entry, dict) else None
    return PortId(normalize_guid(match[1]), int(match[2])) if match else None


def _read_device(here: PortId, entry: dict[str, Any], known: DiscoveredDevice | None) -> DiscoveredDevice:
    label = str(entry.get("description", ""))
    kind: DeviceKind = guess_kind(str(entry.get("dname", "")), here.number)
    if label.startswith(("Computer", "Switch")):
        kind = "hca" if label.startswith("Computer") else "switch"
    description = strip_port(str(entry.get("node_description", "")))
    return DiscoveredDevice(here.guid, kind, max(here.number, known.ports if known else 0), description)


def parse_resources(text: str, stderr: str = "") -> FabricDiscovery:
    """Read links, ports or both. Never raises: `problems` names what cannot be read.

    ```
    file  = list | page | "{" { "links" | "ports" | "systems" ":" ( list | page ) } "}"         (JSON)
    page  = "{" "data": list, "total_resources": n, "filtered_resources": n "}"
    list  = "[" { link } "]" | "[" { port } "]"
    ```

    The document with several lists is a snapshot as a script makes it of several answers
    (`jq -n '{links: input, ports: input}' links.json ports.json`). UFM's own snapshots of a topology are `.topo` files,
    which `assay fabric import` reads. `systems` has no cables and is not read. A page that has fewer entries than it
    counts is incomplete. Where links and ports disagree, that is told, and ports give the rates.
    Source: NVIDIA UFM Enterprise REST API, pagination of resources.
    """
    problems = find_stderr_problems(stderr)
    notes: list[str] = []
    document = load_json(text, problems, notes)
    lists = _split(document, problems) if document is not None else {}
    parts = [read(lists[name]) for name, read in (("links", read_links), ("ports", read_ports)) if name in lists]
    if not parts:
        return FabricDiscovery([], {}, tuple(check_has_cables([], problems)), notes=tuple(notes))
    discovery = parts[0] if len(parts) == 1 else _merge(*parts)
    problems += discovery.problems
    all_problems = tuple(check_has_cables(discovery.cables, problems))
    return FabricDiscovery(discovery.cables, discovery.devices, all_problems, discovery.facts, notes=tuple(notes))


def _split(document: Any, problems: list[str]) -> dict[str, list[Any]]:
    """Return the lists of a document by their resource."""
    if isinstance(document, dict) and any(name in document for name in RESOURCES):
        return {name: _unwrap(document[name], name, problems) for name in RESOURCES if name in document}
    entries = _unwrap(document, "this", problems)
    is_ports = any(isinstance(entry, dict) and PORT_FIELDS & entry.keys() for entry in entries)
    return {"ports" if is_ports else "links": entries}


def _unwrap(part: Any, name: str, problems: list[str]) -> list[Any]:
    """Return the entries of a list or page."""
    if isinstance(part, list):
        return part
    entries = part.get("data") if isinstance(part, dict) else None
    if not isinstance(entries, list):
        problems.append(f"{name} is not a list of links or ports")
        return []
    total = part.get("filtered_resources", part.get("total_resources"))
    if isinstance(total, int) and total > len(entries):
        problems.append(f"{name} is one page: {len(entries)} of {total} entries")
    return entries


def _merge(by_link: FabricDiscovery, by_port: FabricDiscovery) -> FabricDiscovery:
    """Return the cables of both, with the rates that the ports tell, and a problem for each that only one has."""
    linked = {frozenset(cable[:2]) for cable in by_link.cables}
    ported = {frozenset(cable[:2]): cable for cable in by_port.cables}
    only_links = [cable for cable in by_link.cables if frozenset(cable[:2]) not in ported]
    only_ports = [cable for ends, cable in ported.items() if ends not in linked]
    problems = [*_describe(only_links, "links", "ports"), *_describe(only_ports, "ports", "links")]
    facts = merge_port_facts([*by_link.facts.values(), *by_port.facts.values()])
    return FabricDiscovery(
        [*by_port.cables, *only_links],
        {**by_link.devices, **by_port.devices},
        (*by_link.problems, *by_port.problems, *problems),
        facts,
    )


def _describe(cables: list[DiscoveredCable], has: str, lacks: str) -> Iterator[str]:
    for cable in cables:
        link = f"the link between {format_port(cable.a)} and {format_port(cable.b)} is among the {has}"
        yield LocalProblem(f"{link}, not among the {lacks}", cable.a.guid, cable.b.guid)
