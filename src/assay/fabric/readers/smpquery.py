r"""Reads what `smpquery nodeinfo`, `portinfo`, `nodedesc` and `pkeys` print, once or many times.

```
file     = { nodeinfo | portinfo | nodedesc | pkeys }
nodeinfo = "# Node info:" address { line }
portinfo = "# Port info:" address "port" n { line }
address  = "Lid" lid | "DR path" path
line     = name ":" "." { "." } text | text                 (a line without a name continues the one before)
nodedesc = "Node Description:" { "." } text              (belongs to the Node info before it)
pkeys    = a table as in `PkeyTable`                     (belongs to the Port info before it)
```

Node info gives the GUID of an address, so it must stand beside the Port info of that address.
`LinkSpeedActive: 10.0 Gbps` alone means QDR or anything faster. LinkSpeedExtActive after it decides; without that line
the rate is not known.
Source: infiniband-diags 44, `smpquery.c`; PortInfo and NodeInfo of the InfiniBand Architecture Specification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery, PortFacts, merge_port_facts
from assay.fabric.health.switch_facts import PkeyTable
from assay.fabric.link_words import parse_port_state, rate_from_lanes
from assay.fabric.readers.tool_text import find_stderr_problems, find_truncation, number_lines
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid

HEADER = re.compile(
    r"# (Node|Port) info:\s+(Lid ([0-9]{1,5})|DR path [^A-Za-z]*(?:slid|dlid|[0-9;, ])*)(?: port ([0-9]{1,5}))?"
)
LINE = re.compile(r"(\w{1,60}):\.+(.*)")
DESCRIPTION = re.compile(r"Node Description:\.+(.*)")
CONTINUED = re.compile(r"\w+")
KINDS: dict[str, DeviceKind] = {"Switch": "switch", "Channel Adapter": "hca", "Router": "router"}
NODE_LINES = {"NodeType", "NumPorts", "Guid", "PortGuid"}
PORT_LINES = {"LinkWidthActive", "LinkState", "PhysLinkState", "LinkSpeedActive"}
LANE = re.compile(r"([0-9.]{1,12}) Gbps")


@dataclass
class _Block:
    kind: str
    address: str
    lid: int = 0
    port: int = 0
    lines: dict[str, str] = field(default_factory=dict)
    description: str | None = None
    table: PkeyTable | None = None


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read nodes and ports. Never raises: `problems` names what is wrong."""
    problems = find_stderr_problems(stderr) + find_truncation(text)
    blocks = _blocks(text, problems)
    known: dict[str, str] = {}
    devices: dict[str, DiscoveredDevice] = {}
    for block in blocks:
        if block.kind == "Node" and (device := _device(block, problems)):
            known[block.address], devices[device.guid] = device.guid, device
    ports = (_port(block, known, problems) for block in blocks if block.kind == "Port")
    facts = [port for port in ports if port]
    if not blocks and not problems:
        problems.append("no node and no port was found")
    return FabricDiscovery([], devices, tuple(problems), merge_port_facts(facts))


def _blocks(text: str, problems: list[str]) -> list[_Block]:
    blocks: list[_Block] = []
    for number, line in number_lines(text):
        if header := HEADER.fullmatch(line):
            kind, address, lid, port = header.groups()
            blocks.append(_Block(kind, address.strip(), int(lid or 0), int(port or 0)))
        elif (match := DESCRIPTION.fullmatch(line)) and blocks and blocks[-1].kind == "Node":
            blocks[-1].description = match[1].strip()
        elif (table := (blocks[-1].table if blocks else None) or PkeyTable()).add_line(line):
            _add_table(table, blocks, number, problems)
        elif (match := LINE.fullmatch(line)) and blocks:
            block, name = blocks[-1], match[1]
            if name in block.lines or name in (PORT_LINES if block.kind == "Node" else NODE_LINES - PORT_LINES):
                problems.append(f"{name} after {block.address} belongs to another block, whose first line is missing")
            block.lines[name] = match[2].strip()
        elif line and not (blocks and CONTINUED.fullmatch(line)):
            problems.append(f"line {number} cannot be read: {line[:80]!r}")
    return blocks


def _add_table(table: PkeyTable, blocks: list[_Block], number: int, problems: list[str]) -> None:
    if blocks and blocks[-1].kind == "Port":
        blocks[-1].table = table
    else:
        problems.append(f"line {number}: the port of these P_Keys is not known: run smpquery portinfo before pkeys")


def _pkeys(block: _Block, problems: list[str]) -> frozenset[int] | None:
    if block.table is None:
        return None
    if not block.table.is_complete:
        problems.append(f"the P_Keys of {block.address} port {block.port} were cut off")
    return block.table.pkeys if block.table.is_complete else None


def _lacks(block: _Block, needed: set[str], problems: list[str]) -> bool:
    missing = sorted(needed - block.lines.keys())
    if missing:
        problems.append(f"the {block.kind.lower()} info of {block.address} lacks {', '.join(missing)}")
    return bool(missing)


def _device(block: _Block, problems: list[str]) -> DiscoveredDevice | None:
    if _lacks(block, NODE_LINES, problems):
        return None
    kind, ports, digits = (block.lines[name] for name in ("NodeType", "NumPorts", "Guid"))
    if kind not in KINDS or not re.fullmatch("[0-9]{1,5}", ports) or not re.fullmatch("0x[0-9a-fA-F]{16}", digits):
        problems.append(f"the node info of {block.address} cannot be read")
        return None
    return DiscoveredDevice(normalize_guid(digits), KINDS[kind], int(ports), block.description or "")


def _port(block: _Block, known: Mapping[str, str], problems: list[str]) -> PortFacts | None:
    if _lacks(block, PORT_LINES, problems):
        return None
    lines = block.lines
    state, physical = parse_port_state(lines["LinkState"], lines["PhysLinkState"])
    if not state:
        problems.append(f"the state {lines['LinkState']!r} of {block.address} port {block.port} is not known")
    rate = _rate(lines) if state == "active" else ""
    if state == "active" and not rate:
        problems.append(f"the rate of {block.address} port {block.port} is missing")
    if block.address not in known:
        problems.append(f"{block.address}: the device of this address is not known")
    guid = known.get(block.address, f"lid {block.lid}" if block.lid else block.address)
    return PortFacts(PortId(guid, block.port), state, physical, rate, pkeys=_pkeys(block, problems))


def _rate(lines: Mapping[str, str]) -> str:
    extended = lines.get("LinkSpeedExtActive", "")
    slow = LANE.fullmatch(lines["LinkSpeedActive"])
    if fast := LANE.fullmatch(extended):
        return rate_from_lanes(lines["LinkWidthActive"], fast[1])
    if slow and (extended == "No Extended Speed" or slow[1] in ("2.5", "5.0")):
        return rate_from_lanes(lines["LinkWidthActive"], slow[1])
    return ""
