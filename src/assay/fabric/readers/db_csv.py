r"""Reads ibdiagnet2's `ibdiagnet2.db_csv`.

```
file    = { "#" text | blank | section }
section = "START_" name  columns  { row }  "END_" name
columns = name { "," name };  row = cell { "," cell }     (cells as in CSV, "N/A" where there is nothing)
```

Read are NODES, PORTS and LINKS (the topology), CABLE_INFO, PM_INFO, PHY_DB16, PKEY and PORT_HIERARCHY_INFO (facts of
ports), and TEMP_SENSING (of devices); columns are found by their names, since versions have different ones. Other
sections are passed over.

- LINKS has each cable once. What shows a lost row: every port that is up in PORTS has a link, every link's ports are
  up in PORTS, every device is in NODES. PORTS may list connected ports only.
- LinkSpeedActv is a bit field of which the fastest bit counts (an NDR switch says 2052, its adapter 2048);
  LinkWidthActv is another (2 is 4x, 16 is 2x).
- NodeType 1 is an adapter, 2 a switch, 3 a router. PortState 4 is active, PortPhyState 5 is up.
- Counters of 64 bits (…Ext, …Extended) are believed over those that stop at 65535 or 255.
- PHY_DB16 (ibdiagnet --get_phy_info) names its columns field0, field1 …: 12 to 17 are mantissa and exponent of the raw,
  the effective and the symbol bit error ratio, mantissa × 10^-exponent (15 and 255 are no error at all).
- PKEY has one row an entry of a port's P_Key table: NodeGUID, LocalPortNum, PKey (of 15 bits), Membership (1 is full).
- TEMP_SENSING has the temperature of a device itself, NodeGUID and CurrentTemperature in °C; that of a module stands in
  CABLE_INFO.
Source: NVIDIA ibdiagnet InfiniBand Fabric Diagnostic Tool User Manual, and public readers of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.ends import lost_on, named, whole
from assay.fabric.link_words import PHYSICAL_NUMBERS, STATE_NUMBERS, rate_from_bits
from assay.fabric.port_facts import PortFacts, joined
from assay.fabric.readers.db_csv_facts import facts, temperatures
from assay.fabric.readers.db_csv_sections import Row, Unreadable, each, guid_in, number, place, sections
from assay.model.cable import DeviceKind, Port

NEEDED = ("NODES", "PORTS", "LINKS")
READ = (*NEEDED, "CABLE_INFO", "PM_INFO", "PHY_DB16", "PKEY", "PORT_HIERARCHY_INFO", "TEMP_SENSING")
KINDS: dict[int, DeviceKind] = {1: "hca", 2: "switch", 3: "router"}


def parse(text: str, stderr: str = "") -> Discovery:
    """Read the database. Never raises: what cannot be read is said in `problems`."""
    problems = lost_on(stderr)
    tables = sections(text, READ, problems)
    problems += [f"there is no section {name}" for name in NEEDED if name not in tables]
    devices = {one.guid: one for one in each(tables, "NODES", _device, problems)}
    ports = joined(each(tables, "PORTS", _port, problems))
    cables = _rated(list(each(tables, "LINKS", _link, problems)), ports, problems)
    problems += _lost(devices, ports, cables)
    more, warm = list(facts(tables, problems)), temperatures(tables, problems)
    said = tuple(whole(cables, problems))
    return Discovery(cables, devices, said, joined([*ports.values(), *more]), temperatures=warm)


def _device(row: Row) -> FoundDevice:
    kind = KINDS.get(number(row, "NodeType"))
    if not kind:
        raise Unreadable("NodeType")
    return FoundDevice(guid_in(row, "NodeGUID", "NodeGuid"), kind, number(row, "NumPorts"), row.get("NodeDesc", ""))


def _port(row: Row) -> PortFacts | None:
    """Return a port's state and rate, None for a switch's own port 0."""
    port = place(row)
    if port.number == 0:
        return None
    state = STATE_NUMBERS.get(number(row, "PortState"), "")
    physical = PHYSICAL_NUMBERS.get(number(row, "PortPhyState"), "")
    if not state or not physical:
        raise Unreadable("PortState")
    rate = rate_from_bits(number(row, "LinkWidthActv"), number(row, "LinkSpeedActv")) if physical == "linkup" else ""
    return PortFacts(port, "disabled" if physical == "disabled" else state, physical, rate)


def _link(row: Row) -> FoundCable:
    a = Port(guid_in(row, "NodeGuid1", "NodeGUID1"), number(row, "PortNum1"))
    return FoundCable(a, Port(guid_in(row, "NodeGuid2", "NodeGUID2"), number(row, "PortNum2")), "")


def _rated(cables: Iterable[FoundCable], ports: Mapping[Port, PortFacts], problems: list[str]) -> list[FoundCable]:
    """Return the cables with the rate that their two ports agree on."""
    rated: dict[Port, FoundCable] = {}
    for cable in cables:
        rates = {ports[end].rate for end in (cable.a, cable.b) if end in ports}
        if len(rates) != 1 or not all(rates):
            said = " and ".join(sorted(rates)) or "nothing"
            problems.append(f"the ends of the cable at {named(cable.a)} say {said} of their rate")
        if cable.a in rated or cable.b in rated:
            problems.append(f"{named(cable.a)} or {named(cable.b)} has two cables")
        rated[cable.a] = rated[cable.b] = cable._replace(rate=rates.pop() if len(rates) == 1 else "")
    return list(dict.fromkeys(rated.values()))


def _lost(devices: Mapping[str, FoundDevice], ports: Mapping[Port, PortFacts], cables: list[FoundCable]) -> list[str]:
    """Say where the sections do not agree on what there is."""
    linked = {end for cable in cables for end in (cable.a, cable.b)}
    up = {port for port, facts in ports.items() if facts.physical == "linkup"}
    said = [f"{named(port)} is up, but no link leads to it" for port in sorted(up - linked)]
    said += [f"{named(port)} has a link, but is not among the ports that are up" for port in sorted(linked - up)]
    named_devices = {port.guid for port in (*linked, *ports)}
    said += [f"{one} is not among the nodes" for one in sorted(named_devices - devices.keys())]
    return said + [f"no port of {one} is listed" for one in sorted(devices.keys() - {port.guid for port in ports})]
