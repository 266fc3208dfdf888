"""Drafts a design from a list of cables: CSV (`device,port,device,port`, or NDT), or a topology file (`.topo`).

A topology file is what ibdiagnet -w, UFM and NVIDIA's cable validation write:

```
file   = { "#" text | blank | system { port } }
system = type name { "CFG:" | option }                          at the start of a line
port   = port [ "-" width "x-" lane "G" ] "->" type name port  indented
```
Types and options of systems are not read. Ports are `7`, `P7`, `17/1` (cage and port, two a cage), or an adapter with
its port (`mlx5_3`, `mlx5_3/P1`). A cable that stands at both of its ends counts once. NDT writes ports as `Port 7`,
`NODE ibp11s0f0`, and `Blade 16_Port 2/20`: port 20 of the second chip on a director's line card 16, here `NAME L16/U2`.
Its cables of another kind than `Data` are none of the fabric.
Sources: UFM Enterprise user manual, NDT plugin; Mellanox/ufm_sdk_3.0, plugins/UFM_NDT_Plugin; ibutils 1.5.7,
`ibdm-topo-file(1)`; NVIDIA ibdiagnet User Manual, Topology Comparison.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from assay.fabric.design.devices import list_adapter_names
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.learn.draft import DesignDraft, DraftCable, DraftDevice
from assay.fabric.learn.hosts import find_most_frequent
from assay.fabric.link_words import rate_from_lanes
from assay.fabric.readers.format_detection import NAMED_PORTS
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.cable import DeviceKind

COLUMNS = ["device", "port", "device", "port"]
NDT_COLUMNS = ["startdevice", "startport", "enddevice", "endport", "linktype"]
NDT_PORT = re.compile(r"Port (\d+)")
NDT_BLADE = re.compile(r"Blade (\d+)_Port (\d+)/(\d+)")
SYSTEM = re.compile(r"(\w[\w.+-]*)\s+(\S+)(?:\s+(?:CFG:|\S+=\S+))*")
"""A prompt, and other foreign text, is no system: it has other characters, or more words."""
PORT = re.compile(r"\s+(\S+)\s+(?:-(\d+x)-([\d.]+)G-?>|-+>)\s+(\S+)\s+(\S+)\s+(\S+)\s*")
NUMBERED = re.compile(r"P?([1-9]\d{0,3})(?:/([12]))?")
ADAPTER = re.compile(r"([A-Za-z][\w-]*)(?:/P?([1-9]\d?))?")
RATE = "4xNDR"
PORTS_PER_CAGE = 2
PORT_COUNTS = (36, 40, 64, 128, 144)


class NamedCable(NamedTuple):
    """The cable of one line: the device and the port of either end, as they are written."""

    line: int
    a: tuple[str, str]
    b: tuple[str, str]
    rate: str = ""


@dataclass
class CablingFile:
    """The cables that were read, and the problems: the number of each line that is no cable, and why."""

    cables: list[NamedCable] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    is_cut: bool = False
    """Whether the last line has no end: the file may have been cut off within it."""


def read_cabling_file(text: str) -> CablingFile:
    """Return the cables of a file, each once. Raises AssayError for CSV with other columns."""
    file = CablingFile(is_cut=not text.endswith(("\n", "\r", ",Data", ", Data")))
    seen = set()
    for cable in _read_topology(text, file) if NAMED_PORTS.search(text) else _read_csv(text, file):
        if (cable.b, cable.a) not in seen:
            seen.add((cable.a, cable.b))
            file.cables.append(cable)
    return file


def _read_topology(text: str, file: CablingFile) -> Iterator[NamedCable]:
    system = ""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.partition("#")[0].rstrip()
        if not plain:
            continue
        if not plain[0].isspace() and (match := SYSTEM.fullmatch(plain)):
            system = match[2]
        elif (match := PORT.fullmatch(plain)) and system:
            port, width, lane, _, far, far_port = match.groups()
            rate = rate_from_lanes(width, lane) if width else ""
            if width and not rate:
                file.problems.append((number, f"{width} of {lane} Gb/s are no known rate"))
            yield NamedCable(number, (system, port), (far, far_port), rate)
        else:
            file.problems.append((number, f"{plain.strip()[:80]!r} is neither a system nor a port of one"))


def _read_csv(text: str, file: CablingFile) -> Iterator[NamedCable]:
    rows = csv.reader(text.removeprefix("\ufeff").splitlines(), strict=True)
    try:
        columns = [cell.strip().lower().removeprefix("#").removeprefix("fields:") for cell in next(rows, [])]
        if columns == NDT_COLUMNS:
            yield from _read_ndt(rows, file)
            return
        if columns != COLUMNS:
            fix = f"begin with the line `{','.join(COLUMNS)}`, and write `leaf-1,17/1,n001,mlx5_0`"
            raise AssayError("this is no list of cables", where="line 1", fix=fix)
        for row in rows:
            cells = [cell.strip() for cell in row]
            if len(cells) == len(COLUMNS) and all(cells):
                yield NamedCable(rows.line_num, (cells[0], cells[1]), (cells[2], cells[3]))
            elif any(cells):
                file.problems.append((rows.line_num, "a line has a device and a port, twice"))
    except csv.Error as error:
        raise AssayError(f"this is no CSV: {error}", where=f"line {rows.line_num}", fix="save it as CSV") from None


def _read_ndt(rows: Any, file: CablingFile) -> Iterator[NamedCable]:
    for row in rows:
        cells = [cell.strip() for cell in row]
        if len(cells) == len(NDT_COLUMNS) and all(cells):
            if cells[4].lower() == "data":
                yield NamedCable(rows.line_num, _read_ndt_end(*cells[:2]), _read_ndt_end(*cells[2:4]))
        elif any(cells):
            file.problems.append((rows.line_num, "a line has a device and a port, twice, and the type of the link"))


def _read_ndt_end(device: str, port: str) -> tuple[str, str]:
    if blade := NDT_BLADE.fullmatch(port):
        return f"{device} L{int(blade[1]):02}/U{int(blade[2])}", str(int(blade[3]))
    numbered = NDT_PORT.fullmatch(port)
    return device, numbered[1] if numbered else port.removeprefix(f"{device} ")


class CablingDraft:
    """Makes a design of a list of cables. GUIDs come from the fleet and from a discovery, by name."""

    def __init__(self, file: CablingFile, fleet: Fleet, discovery: FabricDiscovery | None = None) -> None:
        self._file = file
        self._fleet = fleet
        self._discovery = discovery
        self._devices: dict[str, tuple[DeviceKind, int]] = {}
        """The kind of each device that no inventory has, and its highest port."""
        self._has_cages = False

    def draft(self, name: str) -> DesignDraft:
        """Return the draft. Lines that cannot be resolved are added to the file's problems."""
        cables = list(self._list_cables())
        discovered = self._discovery.cables if self._discovery else ()
        rate = find_most_frequent(cable.rate for cable, _ in cables if cable.rate) or find_most_frequent(
            cable.rate for cable in discovered
        )
        draft = DesignDraft(name, f"Cabling of a file: {len(cables)} cables", rate or RATE)
        draft.review = ["the last line has no end: was the file cut off?"] if self._file.is_cut else []
        draft.review += [] if rate else [f"the file has no rate; {RATE} is a guess"]
        if self._has_cages:
            highest = max(port for kind, port in self._devices.values() if kind == "switch")
            ports = next((count for count in PORT_COUNTS if count >= highest), highest)
            draft.switch = f"{{product: switch, ports: {ports}, labels: cage/port}} # review: name the product"
        draft.devices = list(self._draft_devices())
        for cable, (a, b) in cables:
            draft.cables.append(DraftCable(a, b, cable.rate if cable.rate != draft.rate else ""))
        return draft

    def _list_cables(self) -> Iterator[tuple[NamedCable, tuple[str, str]]]:
        used: dict[str, int] = {}
        for cable in self._file.cables:
            try:
                a, b = (self._resolve(*end) for end in (cable.a, cable.b))
                taken = next((end for end in (a, b) if end in used), "")
                if taken or a == b:
                    problem = f"has a cable already: line {used[taken]}" if taken else "is at both ends"
                    raise ValueError(f"{taken or a} {problem}")
            except ValueError as error:
                self._file.problems.append((cable.line, str(error)))
                continue
            used |= {a: cable.line, b: cable.line}
            yield cable, (a, b)

    def _resolve(self, device: str, port: str) -> str:
        """Return an end as `DEVICE/PORT`. Raises ValueError if the port is none."""
        kind: DeviceKind = "switch"
        node = self._fleet.nodes.get(device)
        if (numbered := NUMBERED.fullmatch(port)) and node is None:
            number, part = int(numbered[1]), int(numbered[2] or 0)
            self._has_cages = self._has_cages or part > 0
            number = (number - 1) * PORTS_PER_CAGE + part if part else number
        elif adapter := ADAPTER.fullmatch(port):
            kind = "hca"
            device = f"{device} {adapter[1]}"
            number = int(adapter[2] or 1)
            if node and device not in (known := list_adapter_names(node, self._fleet)):
                names = ", ".join(name.removeprefix(f"{node.name} ") for name in known)
                raise ValueError(f"{node.name} has no adapter {adapter[1]}: it has {names}")
        else:
            raise ValueError(f"{port!r} is no port: write it as 7, 17/1 or mlx5_3")
        if node is None:
            self._devices[device] = (kind, max(number, self._devices.get(device, (kind, 0))[1]))
        return f"{device}/{number}"

    def _draft_devices(self) -> Iterator[DraftDevice]:
        """Yield each device that no inventory has, with the GUID and the ports that a design or the discovery knows."""
        known: dict[str, tuple[str, DeviceKind, int]] = {}
        for design in self._fleet.designs.values():
            ports = design.switch.port_count if design.switch else 0
            known |= {name: (switch.guid, "switch", ports) for name, _, _, switch in design.switches()}
        discovered = list(self._discovery.devices.values()) if self._discovery else []
        counts = Counter(device.name for device in discovered)
        known |= {
            device.name: (device.guid, device.kind, device.ports) for device in discovered if counts[device.name] == 1
        }
        for name, (kind, highest) in self._devices.items():
            guid, kind, ports = known.get(name, ("", kind, 0))  # noqa: PLW2901 — what is known is better
            count = 0 if kind == "switch" and self._has_cages else max(ports, highest)
            yield DraftDevice(guid, name, kind, count if kind != "hca" or count > 1 else 0)
