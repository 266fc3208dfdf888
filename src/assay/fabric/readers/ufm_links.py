r"""Reads the links that UFM's REST interface lists (`GET /ufmRest/resources/links`).

```
links = "[" { link } "]"                                   (JSON)
link  = { "source_guid": guid, "source_port": n, "destination_guid": guid, "destination_port": n, ... }
```

`name` repeats the four (`GUID_PORT:GUID_PORT`). Optional fields are `width` (`4x`, earlier `IB_4x`) with `speed` or
`active_speed`; the labels `source_port_dname` and `destination_port_dname`; and, as hints, the descriptions
`source_port_node_description` and `destination_port_node_description`. Not read: `severity`, `capabilities`, and what
`cable_info` and `monitoring_counters_info` add.

The documented versions of UFM list no speed. Then a cable's rate is empty, and the text cannot show whether it is as
designed. A link is listed once, and there is no count, so a link that UFM left out goes unnoticed. A text that is cut
off does not. The ports of UFM (`ufm_ports.py`) tell both.
Source: NVIDIA UFM Enterprise REST API 6.11 to 6.20, Links; public plugins that read it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, PortFacts
from assay.fabric.link_rates_and_states import SPEEDS, parse_rate, rate_from_lanes
from assay.fabric.readers.link_end_matching import format_port
from assay.model.specs.fabric.ports_and_cables import DeviceKind, PortId, normalize_guid

SIDES = ("source", "destination")
NAME = re.compile("([0-9a-fA-F]{1,16})_([0-9]{1,5}):([0-9a-fA-F]{1,16})_([0-9]{1,5})")
HOST_PORT = re.compile(r"HCA-\w+/[0-9]+")


def read_links(links: Sequence[Any]) -> FabricDiscovery:
    """Read a list of links. Never raises: `problems` names what cannot be read."""
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
