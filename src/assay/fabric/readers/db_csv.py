r"""Reads ibdiagnet2's `ibdiagnet2.db_csv`.

```
file    = { "#" text | blank | section }
section = "START_" name  columns  { row }  "END_" name
columns = name { "," name };  row = cell { "," cell }     (cells as in CSV, "N/A" where there is nothing)
```

Read are NODES, PORTS and LINKS (the topology), CABLE_INFO, PM_INFO and PORT_HIERARCHY_INFO (facts of ports); columns
are found by their names, since versions have different ones. Other sections are passed over.

- LINKS has each cable once. What shows a lost row: every port that is up in PORTS has a link, every link's ports are
  up in PORTS, every device is in NODES. PORTS may list connected ports only.
- LinkSpeedActv is a bit field of which the fastest bit counts (an NDR switch says 2052, its adapter 2048);
  LinkWidthActv is another (2 is 4x, 16 is 2x).
- NodeType 1 is an adapter, 2 a switch, 3 a router. PortState 4 is active, PortPhyState 5 is up.
- Counters of 64 bits (…Ext, …Extended) are believed over those that stop at 65535 or 255.
Source: NVIDIA ibdiagnet InfiniBand Fabric Diagnostic Tool User Manual, and public readers of the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.ends import guid, lost_on, named, whole
from assay.fabric.link_words import PHYSICAL_NUMBERS, STATE_NUMBERS, rate_from_bits
from assay.fabric.port_facts import SATURATION, ModuleValue, PortFacts, classic_saturated, joined
from assay.model.cable import DeviceKind, Port

Row = Mapping[str, str]
Found = TypeVar("Found")
NEEDED = ("NODES", "PORTS", "LINKS")
READ = (*NEEDED, "CABLE_INFO", "PM_INFO", "PORT_HIERARCHY_INFO")
KINDS: dict[int, DeviceKind] = {1: "hca", 2: "switch", 3: "router"}
COUNTERS = {"PortXmitDiscard": "PortXmitDiscards", "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors"} | {
    name: name
    for name in (
        *SATURATION, "PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts",
    )
}  # fmt: skip
"""PM_INFO's names, without what follows the name of a wide counter, and perfquery's."""
MARK = re.compile(r"(START|END)_(\w+)")
WIDE = re.compile(r"(\w+?)(?:Extended|Ext)$")
NOT_COUNTED = (1 << 64) - 2
"""From here on a wide counter says that it is not supported."""
TEXTS = {"Vendor": "vendor", "PN": "part", "SN": "serial", "FWVersion": "firmware", "TypeDesc": "technology"}
NUMBERS = {"Temperature": "temperature_c", "LengthDesc": "length_m", "Voltage": "voltage_mv"}


class _Unreadable(ValueError):
    """A cell is not what its column promises."""


def parse(text: str, stderr: str = "") -> Discovery:
    """Read the database. Never raises: what cannot be read is said in `problems`."""
    problems = lost_on(stderr)
    tables = _tables(text, problems)
    problems += [f"there is no section {name}" for name in NEEDED if name not in tables]
    devices = {one.guid: one for one in _each(tables, "NODES", _device, problems)}
    ports = joined(_each(tables, "PORTS", _port, problems))
    cables = _rated(list(_each(tables, "LINKS", _link, problems)), ports, problems)
    problems += _lost(devices, ports, cables)
    readers = (("CABLE_INFO", _module), ("PM_INFO", _counters), ("PORT_HIERARCHY_INFO", _label))
    more = [fact for name, read in readers for fact in _each(tables, name, read, problems)]
    return Discovery(cables, devices, tuple(whole(cables, problems)), joined([*ports.values(), *more]))


def _tables(text: str, problems: list[str]) -> dict[str, list[Row]]:
    """Return the rows of the sections that are read."""
    tables: dict[str, list[Row]] = {}
    name, lines = "", list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if mark := MARK.fullmatch(line.strip()):
            problems += _misplaced(number, mark, name, tables)
            if mark[1] == "END" and name in READ:
                tables[name] = _rows(name, lines, problems)
            name, lines = mark[2] if mark[1] == "START" else "", []
        elif name:
            lines.append(line)
        elif line.strip() and not line.startswith("#"):
            problems.append(f"line {number} stands in no section: {line[:80]!r}")
    problems += [f"section {name} has no end"] if name else []
    return tables


def _misplaced(number: int, mark: re.Match[str], inside: str, tables: Mapping[str, list[Row]]) -> list[str]:
    """Say what is wrong with a section's beginning or end where it stands."""
    if mark[1] == "START":
        return [f"line {number}: section {inside} has no end"] if inside else []
    if mark[2] != inside:
        return [f"line {number}: section {mark[2]} ends here, but {inside or 'none'} began"]
    return [f"line {number}: there are two sections {inside}"] if inside in tables else []


def _rows(name: str, lines: list[str], problems: list[str]) -> list[Row]:
    try:
        cells = [row for row in csv.reader(lines, skipinitialspace=True) if row]
    except csv.Error as error:
        problems.append(f"section {name}: {error}")
        return []
    columns = [one.strip() for one in cells[0]] if cells else []
    if wrong := [row for row in cells[1:] if len(row) != len(columns)]:
        problems.append(f"section {name}: {len(wrong)} of {len(cells) - 1} rows have too few or too many cells")
    return [
        dict(zip(columns, (one.strip() for one in row), strict=True)) for row in cells[1:] if len(row) == len(columns)
    ]


def _each(
    tables: Mapping[str, list[Row]], name: str, read: Callable[[Row], Found | None], problems: list[str]
) -> Iterator[Found]:
    """Yield what every row of a section says; say how many cannot be read."""
    failed = 0
    for row in tables.get(name, ()):
        try:
            if (found := read(row)) is not None:
                yield found
        except _Unreadable:
            failed += 1
    if failed:
        problems.append(f"section {name}: {failed} of {len(tables[name])} rows cannot be read")


def _number(row: Row, *names: str) -> int:
    for name in names:
        if re.fullmatch(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,20}", cell := row.get(name, "")):
            return int(cell, 0) if cell.startswith("0x") else int(cell)
    raise _Unreadable(names[0])


def _guid(row: Row, *names: str) -> str:
    for name in names:
        if found := re.fullmatch("(?:0x)?([0-9a-fA-F]{1,16})", row.get(name, "")):
            return guid(found[1])
    raise _Unreadable(names[0])


def _at(row: Row) -> Port:
    return Port(_guid(row, "NodeGuid", "NodeGUID"), _number(row, "PortNum", "PortNumber"))


def _device(row: Row) -> FoundDevice:
    kind = KINDS.get(_number(row, "NodeType"))
    if not kind:
        raise _Unreadable("NodeType")
    return FoundDevice(_guid(row, "NodeGUID", "NodeGuid"), kind, _number(row, "NumPorts"), row.get("NodeDesc", ""))


def _port(row: Row) -> PortFacts | None:
    """Return a port's state and rate, None for a switch's own port 0."""
    port = _at(row)
    if port.number == 0:
        return None
    state = STATE_NUMBERS.get(_number(row, "PortState"), "")
    place = PHYSICAL_NUMBERS.get(_number(row, "PortPhyState"), "")
    if not state or not place:
        raise _Unreadable("PortState")
    rate = rate_from_bits(_number(row, "LinkWidthActv"), _number(row, "LinkSpeedActv")) if place == "linkup" else ""
    return PortFacts(port, "disabled" if place == "disabled" else state, place, rate)


def _link(row: Row) -> FoundCable:
    a = Port(_guid(row, "NodeGuid1", "NodeGUID1"), _number(row, "PortNum1"))
    return FoundCable(a, Port(_guid(row, "NodeGuid2", "NodeGUID2"), _number(row, "PortNum2")), "")


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


def _module(row: Row) -> PortFacts | None:
    module: dict[str, ModuleValue] = {
        ours: row[theirs] for theirs, ours in TEXTS.items() if row.get(theirs, "N/A") not in ("N/A", "")
    }
    for theirs, ours in NUMBERS.items():
        if found := re.match(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?", row.get(theirs, "")):
            module[ours] = float(found[0])
    return PortFacts(_at(row), module=module) if module else None


def _counters(row: Row) -> PortFacts:
    """Return the counters. One that is not wide and stands at its end means "at least"."""
    narrow: dict[str, int] = {}
    wide: dict[str, int] = {}
    for column, cell in row.items():
        long = WIDE.fullmatch(column)
        name = COUNTERS.get(long[1] if long else column)
        if name and cell not in ("N/A", "NA", "") and (count := _number(row, column)) < NOT_COUNTED:
            (wide if long else narrow)[name] = count
    return PortFacts(_at(row), counters=narrow | wide, saturated=classic_saturated(narrow) - wide.keys())


def _label(row: Row) -> PortFacts | None:
    label = next((row[name] for name in ("ExtendedLabel", "Label") if row.get(name, "N/A") not in ("N/A", "")), "")
    return PortFacts(_at(row), label=label) if label else None
