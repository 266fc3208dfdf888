r"""Reads the links that UFM's REST interface lists (`GET /ufmRest/resources/links`).

```
file = "[" { link } "]"                                   (JSON)
link = { "source_guid": guid, "source_port": n, "destination_guid": guid, "destination_port": n, ... }
```

`name` repeats the four (`GUID_PORT:GUID_PORT`). Optional fields are `width` with `speed` or `active_speed`; the labels
`source_port_dname` and `destination_port_dname`; and, as hints, the descriptions `source_port_node_description` and
`destination_port_node_description`.

Most versions of UFM list no speed. Then a cable's rate is empty, and the text cannot show whether it is as designed. A
link is listed once, and there is no count, so a link that UFM left out goes unnoticed. A text that is cut off does not.
Source: NVIDIA UFM Enterprise REST API, Links; public plugins that read it.
"""

from __future__ import annotations

import re
from typing import Any

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, PortFacts
from assay.fabric.link_rates_and_states import SPEEDS, parse_rate, rate_from_lanes
from assay.fabric.readers.link_end_matching import check_has_cables, format_port
from assay.fabric.readers.tolerant_json import load_json
from assay.fabric.readers.truncated_output import find_stderr_problems
from assay.model.fabric.ports_and_cables import DeviceKind, PortId, normalize_guid

SIDES = ("source", "destination")
NAME = re.compile("([0-9a-fA-F]{1,16})_([0-9]{1,5}):([0-9a-fA-F]{1,16})_([0-9]{1,5})")
HOST_PORT = re.compile(r"HCA-\w+/[0-9]+")


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a list of links. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr)
    document = load_json(text, problems)
    if document is not None and not isinstance(document, list):
        problems.append("this is not a list of links")
    links = document if isinstance(document, list) else []
    devices: dict[str, DiscoveredDevice] = {}
    ends: dict[PortId, DiscoveredCable] = {}
    facts: dict[PortId, PortFacts] = {}
    for index, link in enumerate(links):
        a, b = (_end(link, side, devices, facts) for side in SIDES)
        if not a or not b:
            problems.append(f"link {index + 1} has no GUID or port at one end")
            continue
        name = NAME.fullmatch(str(link.get("name", "")))
        if name and {a, b} != {
            PortId(normalize_guid(name[1]), int(name[2])),
            PortId(normalize_guid(name[3]), int(name[4])),
        }:
            problems.append(f"link {index + 1} does not match its name")
        cable = DiscoveredCable(a, b, _rate(link))
        for port in (a, b):
            if port in ends and set(ends[port][:2]) != {a, b}:
                problems.append(f"{format_port(port)} has two links")
        ends[a] = ends[b] = cable
    cables = list(dict.fromkeys(ends.values()))
    without_rate = sum(not cable.rate for cable in cables)
    if 0 < without_rate < len(cables):
        problems.append(f"{without_rate} of {len(cables)} links have no rate")
    return FabricDiscovery(cables, devices, tuple(check_has_cables(cables, problems)), facts)


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
    kind: DeviceKind = "hca" if HOST_PORT.fullmatch(label) or (not label and port.number == 1) else "switch"
    devices[port.guid] = DiscoveredDevice(
        port.guid, kind, max(port.number, known.ports if known else 0), _description(link, side)
    )
    facts[port] = PortFacts(port, label=label.rpartition(":")[2])
    return port


def _description(link: dict[str, Any], side: str) -> str:
    """Return the device's name: UFM appends a switch's port to it (`leaf-1:33`, `name:L16/U2/20`)."""
    return re.sub(r":[0-9LU/]+$", "", str(link.get(f"{side}_port_node_description", "")).strip())


def _rate(link: dict[str, Any]) -> str:
    width, speed = str(link.get("width", "")), str(link.get("active_speed") or link.get("speed") or "").upper()
    if speed in SPEEDS:
        rate = f"{width}{speed}"
        return rate if parse_rate(rate) else ""
    return rate_from_lanes(width, speed)
