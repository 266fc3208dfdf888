r"""Reads the ports that UFM's REST interface lists (`GET /ufmRest/resources/ports`).

```
ports = "[" { port } "]"                                   (JSON)
port  = { "name": guid_port, "peer": guid_port | "N/A", ... }
guid_port = guid "_" number
```

Read: `name` and `peer` (where the cable leads), `active_width` and `active_speed` (`4x`, `NDR`), `physical_state`
(`Link Up`, `Polling`, `Disabled`), `logical_state` (`Active`), `dname` (the label), `node_description`, and
`description` (`Switch IB Port`, `Computer IB Port`). Not read: `lid`, `mtu`, enabled and supported speeds, `severity`,
alarms, `path`, and what `cable_info` adds.

Each cable stands twice, at both of its ends, so a port that is left out shows. `name` of an adapter has the GUID of its
port, which differs from that of the device on adapters with several ports: no answer of UFM tells both.
Source: NVIDIA UFM Enterprise REST API, Ports; NVIDIA's plugins for UFM, and public clients that read it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery, PortFacts
from assay.fabric.link_rates_and_states import parse_port_state
from assay.fabric.readers.link_end_matching import PortEnds, format_port, join_ends
from assay.fabric.readers.ufm_links import find_rate_gaps, guess_kind, rate_of, strip_port
from assay.fabric.reading_problems import LocalProblem
from assay.model.specs.fabric.ports_and_cables import DeviceKind, PortId, normalize_guid

PORT = re.compile("(?:0x)?([0-9a-fA-F]{1,16})_([0-9]{1,5})")


def read_ports(ports: Sequence[Any]) -> FabricDiscovery:
    """Read a list of ports. Never raises: `problems` names what cannot be read."""
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
        facts[here] = _read_facts(here, entry)
        devices[here.guid] = _read_device(here, entry, devices.get(here.guid))
        if there := _find_port(entry, "peer"):
            ends[here] = (there, facts[here].rate)
        elif facts[here].physical == "linkup":
            problems.append(LocalProblem(f"{format_port(here)} is up, and its `peer` is not told", here.guid))
    cables = join_ends(ends, devices, problems)
    return FabricDiscovery(cables, devices, (*problems, *find_rate_gaps(cables)), facts)


def _find_port(entry: Any, field: str) -> PortId | None:
    found = PORT.fullmatch(str(entry.get(field, ""))) if isinstance(entry, dict) else None
    return PortId(normalize_guid(found[1]), int(found[2])) if found else None


def _read_facts(here: PortId, entry: dict[str, Any]) -> PortFacts:
    state, physical = parse_port_state(str(entry.get("logical_state", "")), str(entry.get("physical_state", "")))
    label = str(entry.get("dname", "")).rpartition(":")[2]
    return PortFacts(here, state, physical, rate_of(entry, "active_width", "active_speed"), label=label)


def _read_device(here: PortId, entry: dict[str, Any], known: DiscoveredDevice | None) -> DiscoveredDevice:
    said = str(entry.get("description", ""))
    kind: DeviceKind = guess_kind(str(entry.get("dname", "")), here.number)
    if said.startswith(("Computer", "Switch")):
        kind = "hca" if said.startswith("Computer") else "switch"
    description = strip_port(str(entry.get("node_description", "")))
    return DiscoveredDevice(here.guid, kind, max(here.number, known.ports if known else 0), description)
