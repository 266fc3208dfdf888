"""Reads what NVIDIA UFM tells of a fabric: the ports of its REST interface (`/ufmRest/resources/ports`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assay.fabric.discovery import (
    DiscoveredCable,
    DiscoveredDevice,
    FabricDiscovery,
    LocalProblem,
    PortFacts,
)
from assay.fabric.link_words import SPEEDS, parse_port_state, parse_rate, rate_from_lanes
from assay.fabric.readers.link_end_matching import PortEnds, check_has_cables, format_port, join_ends
from assay.fabric.readers.tool_text import find_stderr_problems, load_json
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid

HOST_PORT = re.compile(r"HCA-\w+/[0-9]+")
PORT = re.compile("(?:0x)?([0-9a-fA-F]{1,16})_([0-9]{1,5})")


def find_rate_gaps(cables: Sequence[DiscoveredCable]) -> list[str]:
    """Return a problem if some cables have a rate and others none. Without any, the version of UFM tells none."""
    without_rate = sum(not cable.rate for cable in cables)
    return [f"{without_rate} of {len(cables)} links have no rate"] if 0 < without_rate < len(cables) else []


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


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read the ports, as a list or a page of one. Never raises: `problems` names what cannot be read.

    ```
    file  = ports | "{" "data": ports, "total_resources": n, "filtered_resources": n "}"         (JSON)
    ```

    A page that has fewer entries than it counts is incomplete.
    Source: NVIDIA UFM Enterprise REST API, pagination of resources.
    """
    problems = find_stderr_problems(stderr)
    notes: list[str] = []
    document = load_json(text, problems, notes)
    ports = document.get("data") if isinstance(document, dict) else document
    if not isinstance(ports, list):
        problems.append("this is not a list of ports")
        ports = []
    total = document.get("filtered_resources", document.get("total_resources")) if isinstance(document, dict) else None
    if isinstance(total, int) and total > len(ports):
        problems.append(f"this is one page: {len(ports)} of {total} entries")
    discovered = read_ports(ports)
    every = tuple(check_has_cables(discovered.cables, [*problems, *discovered.problems]))
    return FabricDiscovery(discovered.cables, discovered.devices, every, discovered.facts, notes=tuple(notes))
