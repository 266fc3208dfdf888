"""Reads lists of links: ibdiagnet2's `ibdiagnet2.net_dump`, and the `.lst` of OpenSM and ibdiagnet."""

from __future__ import annotations

import re

from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery, LocalProblem, PortFacts
from assay.fabric.lazy_discovery import read_system
from assay.fabric.link_words import parse_port_state, rate_from_lanes
from assay.fabric.readers.link_end_matching import PortListing, format_port
from assay.fabric.readers.tool_text import (
    SWITCHLIKE,
    find_port_gaps,
    find_product,
    find_truncated_switches,
    number_lines,
)
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid

SWITCH = re.compile(r'"(.*)",[^,]*,\s*0x([0-9a-fA-F]{1,16}),\s*LID\s+[0-9]+')
FIELDS = 13
ROW_SHAPE = re.compile(r"0x[0-9a-fA-F]{4}|(?:[^:]*:){4}")
_HEX = "[0-9a-fA-F]{1,16}"
_END = (
    rf"\{{ (CA|SW|RT)(?:-SM)? Ports:({_HEX}) SystemGUID:({_HEX}) NodeGUID:({_HEX}) PortGUID:{_HEX} "
    rf"VenID:\w+ DevID:\w+ Rev:\w+ \{{(.*)\}} LID:{_HEX} PN:({_HEX}) \}}"
)
LINE = re.compile(rf"{_END} {_END} PHY=([0-9]{{1,2}}x) LOG=(\w+) SPD=([0-9.]+)")
CUT_SPEEDS = ("1", "2", "5", "10", "20")
"""Speeds that may be the beginning of another one at the end of a text: 10 of 100."""
KINDS: dict[str, DeviceKind] = {"CA": "hca", "SW": "switch", "RT": "router"}


def parse_net_dump(text: str, stderr: str = "") -> FabricDiscovery:
    """Read the links of every switch. Never raises: `problems` names what cannot be read.

    ```
    file   = { "#" text | switch }
    switch = '"' desc '",' vendor "," guid ", LID" lid  header  { row }
    header = "#" ":" text
    row    = label ":" n ":" state ":" physical ":" mtu ":" width ":" lane ":" fec ":" retran ":" far
    far    = guid ":" label ":" lid ":" '"' desc '"'
    ```

    - A `label` is what is printed at a port (`1/17/1` is ASIC/cage/port, with a fourth number if the port is split). It
      is NOT the port's number, which is `n`. The far port's number is looked up by its label under its own switch.
    - `lane` is in Gbit/s without line coding: 50 is HDR, 100 is NDR. "N/A" means no value.
    - Only switches have a record, so the cable of an adapter is listed once. A lost row shows so: every switch lists
      its ports from 1 on without a gap, as many as its product has or as another switch of that product lists. A switch
      of an unknown product, without another one like it, cannot be shown to be complete, which is a problem.
    - A device without a record counts as an adapter, unless its description or its port belong to a switch.
    Source: the explanation at the start of the file itself, and public readers of it.
    """
    dump = _DumpListing(stderr)
    for number, line in number_lines(text):
        dump.add_line(number, line)
    return dump.to_discovery()


class _DumpListing(PortListing):
    def __init__(self, stderr: str) -> None:
        super().__init__(stderr, ROW_SHAPE)
        self.switch = self.description = ""
        self.products: dict[str, str] = {}
        self.by_label: dict[tuple[str, str], PortId] = {}
        self.far: dict[PortId, tuple[str, str, str]] = {}

    def add_line(self, number: int, line: str) -> None:
        if match := SWITCH.fullmatch(line):
            self.description, self.switch = match[1].strip(), normalize_guid(match[2])
            if self.switch in self.products:
                self.problems.append(LocalProblem(f"line {number}: {self.switch} is listed twice", self.switch))
            self.products[self.switch] = find_product(self.description)
            self.devices[self.switch] = DiscoveredDevice(self.switch, "switch", 0, self.description)
        elif line and not line.startswith("#"):
            fields = [field.strip() for field in line.split(":", FIELDS - 1)]
            if len(fields) < FIELDS or not self.switch or not re.fullmatch("[0-9]{1,5}", fields[1]):
                self.add_unreadable_line(number, line)
            else:
                self._add_row(number, line, fields)

    def _add_row(self, number: int, line: str, fields: list[str]) -> None:
        label, port, logical, physical, _, width, lane, _, _, far, far_label, _, description = fields
        here = PortId(self.switch, int(port))
        self.add_device(here, "switch", self.description)
        state, physical = parse_port_state(logical, physical)
        neighbour = re.fullmatch("0x([0-9a-fA-F]{1,16})", far)
        rate = rate_from_lanes(width, lane) if neighbour else ""
        is_quoted = len(description) > 1 and description[0] == description[-1] == '"'
        is_cut = not is_quoted and description not in ("", "N/A")
        if not state or (physical == "linkup" and not neighbour) or is_cut:
            self.add_unreadable_line(number, line)
        self.by_label[self.switch, label] = here
        if neighbour:
            self.far[here] = (normalize_guid(neighbour[1]), far_label, description.strip('"').strip())
        self.add_port(f"line {number}", PortFacts(here, state, physical, rate, label=label), None)
        if neighbour and not rate:
            self.problems.append(LocalProblem(f"line {number}: no rate of {format_port(here)}"))

    def to_discovery(self) -> FabricDiscovery:
        numbers = self.list_port_numbers(self.products)
        self.problems += find_port_gaps(numbers) or find_truncated_switches(self.products, numbers, self.products)
        for here, (far, label, description) in self.far.items():
            there = self.by_label.get((far, label))
            if far not in self.products:
                self._add_adapter(here, far, label, description)
            elif there is None:
                problem = f"{format_port(here)} leads to {label!r} of {far}, which lists no such port"
                self.problems.append(LocalProblem(problem, here.guid, far))
            else:
                self.ends[here] = (there, self.facts[here].rate)
        return super().to_discovery()

    def _add_adapter(self, here: PortId, far: str, label: str, description: str) -> None:
        """Add both ends of the cable of a device without a record."""
        if SWITCHLIKE.match(description) or not re.fullmatch("[1-4]", label):
            problem = f"{far} ({description}) is cabled to {format_port(here)} but has no record of its own"
            self.problems.append(LocalProblem(problem, far, here.guid, next(reversed(self.products))))
            return
        there, rate = PortId(far, int(label)), self.facts[here].rate
        if there in self.ends:
            problem = f"{format_port(there)} is cabled to two ports"
            self.problems.append(LocalProblem(problem, here.guid, there.guid))
        self.add_device(there, "hca", description)
        self.ends[here], self.ends[there] = (there, rate), (here, rate)


def parse_lst(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a list of links. Never raises: `problems` names what cannot be read.

    ```
    file = { "{" end "}" "{" end "}" "PHY=" width "x" "LOG=" state "SPD=" lane }
    end  = kind "Ports:" hex "SystemGUID:" hex "NodeGUID:" hex "PortGUID:" hex … "{" desc "}" "LID:" hex "PN:" hex
    kind = "CA" | "SW" | "RT", and "-SM" where a subnet manager runs
    ```

    Numbers are hexadecimal. Ports without a link are not listed. DevID and Rev are not read: OpenSM shifts those of the
    far end.
    Source: OpenSM 3.3, `osm_subnet.c` and `osm_db_files.c`; ibutils 1.5, `ibdiagnet`.
    """
    listing = PortListing(stderr)
    lines = list(number_lines(text))
    last = lines[-1][0] if lines and not text.endswith("\n") else 0
    for number, line in lines:
        if (match := LINE.fullmatch(line)) and not (number == last and match[15] in CUT_SPEEDS):
            _link(listing, f"line {number}", match)
        elif line:
            listing.add_unreadable_line(number, line)
    return listing.to_discovery()


def _link(listing: PortListing, where: str, match: re.Match[str]) -> None:
    kind, ports, system, digits, description, port = match.groups()[:6]
    here, there = PortId(normalize_guid(digits), int(port, 16)), PortId(normalize_guid(match[10]), int(match[12], 16))
    state, physical = parse_port_state(match[14], "linkup")
    listing.devices[here.guid] = DiscoveredDevice(
        here.guid, KINDS[kind], int(ports, 16), description.strip(), read_system(system)
    )
    listing.add_port(where, PortFacts(here, state, physical, rate_from_lanes(match[13], match[15])), there)
