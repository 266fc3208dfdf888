"""Reads the sections of `ibdiagnet2.db_csv`, which ibdiagnet2 writes."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from assay.fabric.discovery import (
    CLASSIC_COUNTER_MAX,
    DiscoveredCable,
    DiscoveredDevice,
    FabricDiscovery,
    LocalProblem,
    ModuleValue,
    PortFacts,
    find_saturated_counters,
    merge_port_facts,
)
from assay.fabric.health.counters import decode_register
from assay.fabric.lazy_discovery import read_system
from assay.fabric.link_words import PHYSICAL_NUMBERS, STATE_NUMBERS, rate_from_bits
from assay.fabric.readers.link_end_matching import check_has_cables, format_port
from assay.fabric.readers.tool_text import find_stderr_problems
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid
from assay.model.specs.fabric.design_parts import FULL_MEMBER_BIT

Row = Mapping[str, str]
Reading = TypeVar("Reading")
MARK = re.compile(r"(START|END)_(\w+)")
NOTHING = ("N/A", "NA", "")
"""The cells that mean: no value."""
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
"""The columns of CABLE_INFO, and PortFacts' names for them."""
BER = {"raw": ("field12", "field13"), "effective": ("field14", "field15"), "symbol": ("field16", "field17")}
"""The columns of PHY_DB16 (the physical layer's statistics) with mantissa and exponent of each ratio."""
NEEDED = ("NODES", "PORTS", "LINKS")
READ = (*NEEDED, "CABLE_INFO", "PM_INFO", "PHY_DB16", "PKEY", "PORT_HIERARCHY_INFO", "TEMP_SENSING")
KINDS: dict[int, DeviceKind] = {1: "hca", 2: "switch", 3: "router"}


class UnreadableCell(ValueError):
    """A cell does not hold what its column must hold."""


def read_sections(
    text: str, wanted: Collection[str], problems: list[str], notes: list[str] | None = None
) -> dict[str, list[Row]]:
    """Return the rows of the wanted sections, by the section's name. `notes` gets the lines that are none of a section.

    A section without an end has the rows that are whole.
    """
    tables: dict[str, list[Row]] = {}
    name = ""
    lines = list[str]()
    foreign = list[tuple[int, str]]()
    for number, line in enumerate(text.splitlines(), start=1):
        if mark := MARK.fullmatch(line.strip()):
            problems += _check_mark(number, mark, name, tables)
            if mark[1] == "END" and name in wanted:
                tables[name] = _parse_rows(name, lines, problems)
            name, lines = mark[2] if mark[1] == "START" else "", []
        elif name and ("," in line or not lines or "," not in lines[0]):
            if "," in line and len(lines) == 1 and "," not in lines[0]:  # it stands before the names of the columns
                foreign.append((number - 1, lines.pop()))
            lines.append(line)
        elif line.strip() and not line.startswith("#"):
            foreign.append((number, line))
    if name:
        whole = lines if text.endswith("\n") else lines[:-1]
        problems.append(LocalProblem(f"section {name} has no end: the text was cut off"))
        tables |= {name: _parse_rows(name, whole, problems)} if name in wanted else {}
    if notes is not None:
        notes += [f"line {number} is in no section and was skipped: {line.strip()[:80]!r}" for number, line in foreign]
    return tables


def _check_mark(number: int, mark: re.Match[str], inside: str, tables: Mapping[str, list[Row]]) -> list[str]:
    """Return a problem if a section's start or end is in the wrong place."""
    if mark[1] == "START":
        return [f"line {number}: section {inside} has no end"] if inside else []
    if mark[2] != inside:
        return [f"line {number}: section {mark[2]} ends here, but {inside or 'none'} started"]
    return [f"line {number}: there are two sections {inside}"] if inside in tables else []


def _parse_rows(name: str, lines: list[str], problems: list[str]) -> list[Row]:
    try:
        cells = [row for row in csv.reader(lines, skipinitialspace=True) if row]
    except csv.Error as error:
        problems.append(f"section {name}: {error}")
        return []
    columns = [cell.strip() for cell in cells[0]] if cells else []
    rows = [row for row in cells[1:] if len(row) == len(columns)]
    if wrong := len(cells[1:]) - len(rows):
        problem = f"section {name}: {wrong} of {len(cells) - 1} rows have too few or too many cells"
        problems.append(describe_lost_rows(problem, wrong))
    return [dict(zip(columns, (cell.strip() for cell in row), strict=True)) for row in rows]


def read_rows(
    tables: Mapping[str, list[Row]], name: str, read: Callable[[Row], Reading | None], problems: list[str]
) -> Iterator[Reading]:
    """Yield what `read` returns for each row of a section. Add a problem with the number of unreadable rows."""
    failed = 0
    for row in tables.get(name, ()):
        try:
            if (reading := read(row)) is not None:
                yield reading
        except UnreadableCell:
            failed += 1
    if failed:
        problem = f"section {name}: {failed} of {len(tables[name])} rows cannot be read"
        problems.append(describe_lost_rows(problem, failed))


def describe_lost_rows(problem: str, many: int) -> str:
    """Return the problem of rows that were lost. What one row lacks shows in other sections, and puts that in doubt."""
    return LocalProblem(problem) if many == 1 else problem


def read_number(row: Row, *names: str) -> int:
    """Return the number in the first of these columns that has one. Raises UnreadableCell if none has."""
    for name in names:
        if re.fullmatch(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,20}", cell := row.get(name, "")):
            return int(cell, 0) if cell.startswith("0x") else int(cell)
    raise UnreadableCell(names[0])


def read_guid(row: Row, *names: str) -> str:
    """Return the GUID in the first of these columns that has one. Raises UnreadableCell if none has."""
    for name in names:
        if match := re.fullmatch("(?:0x)?([0-9a-fA-F]{1,16})", row.get(name, "")):
            return normalize_guid(match[1])
    raise UnreadableCell(names[0])


def read_row_port(row: Row) -> PortId:
    """Return the port of a row. Raises UnreadableCell if the row names none."""
    return PortId(read_guid(row, "NodeGuid", "NodeGUID"), read_number(row, "PortNum", "PortNumber", "LocalPortNum"))


def read_text(row: Row, name: str) -> str:
    """Return a cell's text, "" for a cell that means: no value."""
    return "" if (cell := row.get(name, "")) in NOTHING else cell


def read_port_facts(tables: Mapping[str, list[Row]], problems: list[str]) -> Iterator[PortFacts]:
    """Yield the facts of ports, section by section."""
    for name, read in (
        ("CABLE_INFO", _module),
        ("PM_INFO", _counters),
        ("PHY_DB16", _ber),
        ("PORT_HIERARCHY_INFO", _label),
    ):
        yield from read_rows(tables, name, read, problems)
    yield from _partitions(tables, problems)


def read_temperatures(tables: Mapping[str, list[Row]], problems: list[str]) -> dict[str, float]:
    """Return the temperatures of devices, in °C by GUID. Those of modules are in CABLE_INFO."""
    return dict(read_rows(tables, "TEMP_SENSING", _temperature, problems))


def _module(row: Row) -> PortFacts | None:
    module: dict[str, ModuleValue] = {ours: text for theirs, ours in TEXTS.items() if (text := read_text(row, theirs))}
    for theirs, ours in NUMBERS.items():
        if match := re.match(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?", row.get(theirs, "")):
            module[ours] = float(match[0])
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
    known: dict[str, float] = {}
    for name, (mantissa, exponent) in BER.items():
        if read_text(row, mantissa) and read_text(row, exponent):
            ratio = decode_register(read_number(row, mantissa), read_number(row, exponent))
            known |= {name: ratio} if ratio is not None else {}
    return PortFacts(read_row_port(row), ber=known) if known else None


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


def parse_db_csv(text: str, stderr: str = "") -> FabricDiscovery:
    """Read the database. Never raises: `problems` names what cannot be read.

    ```
    file    = { "#" text | blank | section }
    section = "START_" name  columns  { row }  "END_" name
    columns = name { "," name };  row = cell { "," cell }     (cells as in CSV, "N/A" where there is nothing)
    ```

    Sections read: NODES, PORTS and LINKS (the topology); CABLE_INFO, PM_INFO, PHY_DB16, PKEY and PORT_HIERARCHY_INFO
    (facts of ports); TEMP_SENSING (of devices). Columns are found by name, since versions differ. Other sections are
    skipped.

    - LINKS has each cable once. A lost row shows so: every port that is up in PORTS has a link, every link's ports are
      up in PORTS, every device is in NODES. PORTS may list connected ports only.
    - LinkSpeedActv is a bit field whose fastest bit counts (an NDR switch has 2052, its adapter 2048). LinkWidthActv is
      another bit field (2 is 4x, 16 is 2x).
    - NodeType 1 is an adapter, 2 a switch, 3 a router. PortState 4 is active, PortPhyState 5 is up.
    - Counters of 64 bits (…Ext, …Extended) replace those that stop at 65535 or 255.
    - PHY_DB16 (ibdiagnet --get_phy_info) names its columns field0, field1 … Fields 12 to 17 are mantissa and exponent
      of the raw, the effective and the symbol bit error ratio: mantissa × 10^-exponent (15 and 255 mean no error at
      all).
    - PKEY has one row for each entry of a port's P_Key table: NodeGUID, LocalPortNum, PKey (15 bits), Membership (1:
      full).
    - TEMP_SENSING has the temperature of a device itself: NodeGUID, CurrentTemperature in °C. CABLE_INFO has the
      modules'.
    Source: NVIDIA ibdiagnet InfiniBand Fabric Diagnostic Tool User Manual, and public readers of the file.
    """
    problems = find_stderr_problems(stderr)
    notes: list[str] = []
    tables = read_sections(text, READ, problems, notes)
    problems += [f"there is no section {name}" for name in NEEDED if name not in tables]
    devices = {device.guid: device for device in read_rows(tables, "NODES", _device, problems)}
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
    bits = read_number(row, "MKeyProtBits") if read_text(row, "MKeyProtBits") else None
    return PortFacts(port, "disabled" if physical == "disabled" else state, physical, rate, m_key_protect=bits)


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
            problem = f"the ends of the cable at {format_port(cable.a)} report {reported} as their rate"
            problems.append(LocalProblem(problem))
        if cable.a in rated or cable.b in rated:
            problem = f"{format_port(cable.a)} or {format_port(cable.b)} has two cables"
            problems.append(LocalProblem(problem, cable.a.guid, cable.b.guid))
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
