"""Reads ibdiagnet2's `ibdiagnet2.db_csv`.

```
file    = { "#" text | blank | section }
section = "START_" name  columns  { row }  "END_" name
columns = name { "," name };  row = cell { "," cell }     (cells as in CSV, "N/A" where there is nothing)
```

Sections read: NODES, PORTS and LINKS (the topology); CABLE_INFO, PM_INFO, PHY_DB16, PKEY and PORT_HIERARCHY_INFO (facts
of ports); TEMP_SENSING (of devices). Columns are found by name, since versions differ. Other sections are skipped.

- LINKS has each cable once. A lost row shows so: every port that is up in PORTS has a link, every link's ports are up
  in PORTS, every device is in NODES. PORTS may list connected ports only.
- LinkSpeedActv is a bit field whose fastest bit counts (an NDR switch has 2052, its adapter 2048). LinkWidthActv is
  another bit field (2 is 4x, 16 is 2x).
- NodeType 1 is an adapter, 2 a switch, 3 a router. PortState 4 is active, PortPhyState 5 is up.
- Counters of 64 bits (…Ext, …Extended) replace those that stop at 65535 or 255.
- PHY_DB16 (ibdiagnet --get_phy_info) names its columns field0, field1 … Fields 12 to 17 are mantissa and exponent of
  the raw, the effective and the symbol bit error ratio: mantissa × 10^-exponent (15 and 255 mean no error at all).
- PKEY has one row for each entry of a port's P_Key table: NodeGUID, LocalPortNum, PKey (15 bits), Membership (1: full).
- TEMP_SENSING has the temperature of a device itself: NodeGUID, CurrentTemperature in °C. CABLE_INFO has the modules'.
Source: NVIDIA ibdiagnet InfiniBand Fabric Diagnostic Tool User Manual, and public readers of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from assay.fabric.discovery import (
    CLASSIC_COUNTER_MAX,
    DiscoveredCable,
    DiscoveredDevice,
    FabricDiscovery,
    ModuleValue,
    PortFacts,
    find_saturated_counters,
    merge_port_facts,
)
from assay.fabric.health import bit_error_rate
from assay.fabric.lazy_discovery import read_system
from assay.fabric.link_rates_and_states import PHYSICAL_NUMBERS, STATE_NUMBERS, rate_from_bits
from assay.fabric.readers.ibdiagnet_sections import (
    Row,
    UnreadableCell,
    read_guid,
    read_number,
    read_row_port,
    read_rows,
    read_sections,
    read_text,
)
from assay.fabric.readers.link_end_matching import check_has_cables, format_port
from assay.fabric.readers.truncated_output import find_stderr_problems
from assay.fabric.reading_problems import LocalProblem
from assay.model.specs.fabric.design_cables_and_partitions import FULL_MEMBER_BIT
from assay.model.specs.fabric.ports_and_cables import DeviceKind, PortId

WIDE_ONLY = ("PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts")
COUNTERS = {name: name for name in (*CLASSIC_COUNTER_MAX, *WIDE_ONLY)} | {
    "PortXmitDiscard": "PortXmitDiscards",
    "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors",
}
"""PM_INFO's names, without the suffix of a wide counter, and perfquery's names for them."""
WIDE = re.compile(r"(\w+?)(?:Extended|Ext)$")
NOT_COUNTED = (1 << 64) - 2
"""From this value on, a wide counter is not supported."""
TEXTS = {"Vendor": "vendor", "PN": "part", "SN": "serial", "FWVersion": "firmware", "TypeDesc": "technology"}
NUMBERS = {"Temperature": "temperature_c", "LengthDesc": "length_m", "Voltage": "voltage_mv"}
BER = {"raw": ("field12", "field13"), "effective": ("field14", "field15"), "symbol": ("field16", "field17")}
"""The columns of PHY_DB16 (the physical layer's statistics) with mantissa and exponent of each ratio."""


def read_port_facts(tables: Mapping[str, list[Row]], problems: list[str]) -> Iterator[PortFacts]:
    """Yield the facts of ports, section by section."""
    for name, read in (
        ("CABLE_INFO", _module), ("PM_INFO", _counters), ("PHY_DB16", _ber), ("PORT_HIERARCHY_INFO", _label),
    ):  # fmt: skip
        yield from read_rows(tables, name, read, problems)
    yield from _partitions(tables, problems)


def read_temperatures(tables: Mapping[str, list[Row]], problems: list[str]) -> dict[str, float]:
    """Return the temperatures of devices, in °C by GUID. Those of modules are in CABLE_INFO."""
    return dict(read_rows(tables, "TEMP_SENSING", _temperature, problems))


def _module(row: Row) -> PortFacts | None:
    module: dict[str, ModuleValue] = {ours: text for theirs, ours in TEXTS.items() if (text := read_text(row, theirs))}
    for theirs, ours in NUMBERS.items():
        if found := re.match(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?", row.get(theirs, "")):
            module[ours] = float(found[0])
    return PortFacts(read_row_port(row), module=module) if module else None


def _counters(row: Row) -> PortFacts:
    """Return the counters. A narrow one at its maximum, without a wide one beside it, is saturated."""
    narrow: dict[str, int] = {}
    wide: dict[str, int] = {}
    for column in row:
        long = WIDE.fullmatch(column)
        name = COUNTERS.get(long[1] if long else column)
        if name and read_text(row, column) and (count := read_number(row, column)) < NOT_COUNTED:
            (wide if long else narrow)[name] = count
    return PortFacts(
        read_row_port(row), counters=narrow | wide, saturated=find_saturated_counters(narrow) - wide.keys()
    )


def _label(row: Row) -> PortFacts | None:
    label = read_text(row, "ExtendedLabel") or read_text(row, "Label")
    return PortFacts(read_row_port(row), label=label) if label else None


def _partitions(tables: Mapping[str, list[Row]], problems: list[str]) -> Iterator[PortFacts]:
    """Yield the P_Keys of ports. An unreadable row of the section puts every table in doubt, so there are none then."""
    before = len(problems)
    keys: dict[PortId, set[int]] = {}
    for port, key in read_rows(tables, "PKEY", _key, problems):
        keys.setdefault(port, set()).add(key)
    if len(problems) == before:
        yield from (PortFacts(port, pkeys=frozenset(known)) for port, known in keys.items())


def _ber(row: Row) -> PortFacts | None:
    ratios = {name: _ratio(row, *columns) for name, columns in BER.items()}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    return PortFacts(read_row_port(row), ber=known) if known else None


def _ratio(row: Row, mantissa: str, exponent: str) -> float | None:
    if not read_text(row, mantissa) or not read_text(row, exponent):
        return None
    return bit_error_rate.decode_register(read_number(row, mantissa), read_number(row, exponent))


def _key(row: Row) -> tuple[PortId, int] | None:
    """Return one entry of a port's P_Key table, None for an empty one. Membership has its own column or a key bit."""
    key, member = read_number(row, "PKey"), read_text(row, "Membership")
    if key >= 2 * FULL_MEMBER_BIT or member not in ("", "0", "1"):
        raise UnreadableCell("PKey")
    return (read_row_port(row), key | (FULL_MEMBER_BIT if member == "1" else 0)) if key % FULL_MEMBER_BIT else None


def _temperature(row: Row) -> tuple[str, float] | None:
    degrees = read_text(row, "CurrentTemperature")
    if degrees and not re.fullmatch(r"-?[0-9]{1,3}", degrees):
        raise UnreadableCell("CurrentTemperature")
    return (read_guid(row, "NodeGUID", "NodeGuid"), float(degrees)) if degrees else None


NEEDED = ("NODES", "PORTS", "LINKS")
READ = (*NEEDED, "CABLE_INFO", "PM_INFO", "PHY_DB16", "PKEY", "PORT_HIERARCHY_INFO", "TEMP_SENSING")
KINDS: dict[int, DeviceKind] = {1: "hca", 2: "switch", 3: "router"}


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read the database. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr)
    notes: list[str] = []
    tables = read_sections(text, READ, problems, notes)
    problems += [f"there is no section {name}" for name in NEEDED if name not in tables]
    devices = {one.guid: one for one in read_rows(tables, "NODES", _device, problems)}
    ports = merge_port_facts(read_rows(tables, "PORTS", _port, problems))
    cables = _add_rates(list(read_rows(tables, "LINKS", _link, problems)), ports, problems)
    problems += _find_contradictions(devices, ports, cables)
    facts = merge_port_facts([*ports.values(), *read_port_facts(tables, problems)])
    temperatures = read_temperatures(tables, problems)
    all_problems = tuple(check_has_cables(cables, problems))
    return FabricDiscovery(cables, devices, all_problems, facts, temperatures=temperatures, notes=tuple(notes))


def _device(row: Row) -> DiscoveredDevice:
    kind = KINDS.get(read_number(row, "NodeType"))
    if not kind:
        raise UnreadableCell("NodeType")
    return DiscoveredDevice(
        read_guid(row, "NodeGUID", "NodeGuid"),
        kind,
        read_number(row, "NumPorts"),
        row.get("NodeDesc", ""),
        read_system(row.get("SystemImageGUID", "")),
    )


def _port(row: Row) -> PortFacts | None:
    """Return a port's state and rate, None for a switch's own port 0."""
    port = read_row_port(row)
    if port.number == 0:
        return None
    state = STATE_NUMBERS.get(read_number(row, "PortState"), "")
    physical = PHYSICAL_NUMBERS.get(read_number(row, "PortPhyState"), "")
    if not state or not physical:
        raise UnreadableCell("PortState")
    rate = ""
    if physical == "linkup":
        rate = rate_from_bits(read_number(row, "LinkWidthActv"), read_number(row, "LinkSpeedActv"))
    return PortFacts(port, "disabled" if physical == "disabled" else state, physical, rate)


def _link(row: Row) -> DiscoveredCable:
    a = PortId(read_guid(row, "NodeGuid1", "NodeGUID1"), read_number(row, "PortNum1"))
    return DiscoveredCable(a, PortId(read_guid(row, "NodeGuid2", "NodeGUID2"), read_number(row, "PortNum2")), "")


def _add_rates(
    cables: Iterable[DiscoveredCable], ports: Mapping[PortId, PortFacts], problems: list[str]
) -> list[DiscoveredCable]:
    """Return the cables, each with the rate that both of its ports report."""
    rated: dict[PortId, DiscoveredCable] = {}
    for cable in cables:
        rates = {ports[end].rate for end in (cable.a, cable.b) if end in ports}
        if len(rates) != 1 or not all(rates):
            reported = " and ".join(sorted(rates)) or "nothing"
            what = f"the ends of the cable at {format_port(cable.a)} report {reported} as their rate"
            problems.append(LocalProblem(what))
        if cable.a in rated or cable.b in rated:
            what = f"{format_port(cable.a)} or {format_port(cable.b)} has two cables"
            problems.append(LocalProblem(what, cable.a.guid, cable.b.guid))
        rated[cable.a] = rated[cable.b] = cable._replace(rate=rates.pop() if len(rates) == 1 else "")
    return list(dict.fromkeys(rated.values()))


def _find_contradictions(
    devices: Mapping[str, DiscoveredDevice], ports: Mapping[PortId, PortFacts], cables: list[DiscoveredCable]
) -> list[str]:
    """Return a problem for each device, port or link that one section has and another lacks."""
    linked = {end for cable in cables for end in (cable.a, cable.b)}
    up = {port for port, facts in ports.items() if facts.physical == "linkup"}
    named, listed = {port.guid for port in (*linked, *ports)}, {port.guid for port in ports}
    return [
        *(
            LocalProblem(f"{format_port(port)} is up, but no link leads to it", port.guid)
            for port in sorted(up - linked)
        ),
        *(
            LocalProblem(f"{format_port(port)} has a link, but is not among the ports that are up", port.guid)
            for port in sorted(linked - up)
        ),
        *(LocalProblem(f"{guid} is not among the nodes", guid) for guid in sorted(named - devices.keys())),
        *(LocalProblem(f"no port of {guid} is listed", guid) for guid in sorted(devices.keys() - listed)),
    ]
