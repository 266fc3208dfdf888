r"""Reads ibdiagnet2's `ibdiagnet2.net_dump`.

```
file   = { "#" text | switch }
switch = '"' desc '",' vendor "," guid ", LID" lid  header  { row }
header = "#" ":" text
row    = label ":" n ":" state ":" physical ":" mtu ":" width ":" lane ":" fec ":" retran ":" far
far    = guid ":" label ":" lid ":" '"' desc '"'
```

- A `label` is what is printed at a port (`1/17/1` is ASIC/cage/port, with a fourth number where the port is split),
  NOT the port's number: `n` is that. The far port's number is looked up under its own switch by its label.
- `lane` is in Gbit/s without line coding: 50 is HDR, 100 is NDR. "N/A" stands where there is nothing to say.
- Only switches have a record, so the cable of an adapter stands here once. What shows a lost row: every switch lists
  its ports from 1 on without a gap, as many as its product has or as another switch of that product lists
  (`port_counts.py`). A switch of which there is no other, and whose product is not known, cannot be shown to be
  whole, which is a problem.
- A device without a record is taken for an adapter, unless its description or its port say that it is a switch.
Source: the explanation at the file's own beginning, and public readers of it.
"""

from __future__ import annotations

import re

from assay.fabric.discovery import Discovery, FoundDevice
from assay.fabric.ends import Listing, guid, named, numbered
from assay.fabric.link_words import rate_from_lanes, state_of
from assay.fabric.port_counts import SWITCHLIKE, ends_early, gaps, product_of
from assay.fabric.port_facts import PortFacts
from assay.model.cable import Port

SWITCH = re.compile(r'"(.*)",[^,]*,\s*0x([0-9a-fA-F]{1,16}),\s*LID\s+[0-9]+')
FIELDS = 13


def parse(text: str, stderr: str = "") -> Discovery:
    """Read the links of every switch. Never raises: what cannot be read is said in `problems`."""
    dump = _Dump(stderr)
    for number, line in numbered(text):
        dump.line(number, line)
    return dump.discovery()


class _Dump(Listing):
    def __init__(self, stderr: str) -> None:
        super().__init__(stderr)
        self.switch = self.description = ""
        self.products: dict[str, str] = {}
        self.by_label: dict[tuple[str, str], Port] = {}
        self.far: dict[Port, tuple[str, str, str]] = {}

    def line(self, number: int, line: str) -> None:
        if found := SWITCH.fullmatch(line):
            self.description, self.switch = found[1].strip(), guid(found[2])
            if self.switch in self.products:
                self.problems.append(f"line {number}: {self.switch} is listed twice")
            self.products[self.switch] = product_of(self.description)
            self.devices[self.switch] = FoundDevice(self.switch, "switch", 0, self.description)
        elif line and not line.startswith("#"):
            fields = [one.strip() for one in line.split(":", FIELDS - 1)]
            if len(fields) < FIELDS or not self.switch or not re.fullmatch("[0-9]{1,5}", fields[1]):
                self.unread(number, line)
            else:
                self.row(number, line, fields)

    def row(self, number: int, line: str, fields: list[str]) -> None:
        label, port, logical, physical, _, width, lane, _, _, far, far_label, _, description = fields
        here = Port(self.switch, int(port))
        self.device(here, "switch", self.description)
        state, place = state_of(logical, physical)
        neighbour = re.fullmatch("0x([0-9a-fA-F]{1,16})", far)
        rate = rate_from_lanes(width, lane) if neighbour else ""
        if not state or (place == "linkup" and not neighbour) or not _closed(description):
            self.unread(number, line)
        self.by_label[self.switch, label] = here
        if neighbour:
            self.far[here] = (guid(neighbour[1]), far_label, description.strip('"').strip())
        self.port(f"line {number}", PortFacts(here, state, place, rate, label=label), None)
        if neighbour and not rate:
            self.problems.append(f"line {number}: no rate of {named(here)}")

    def discovery(self) -> Discovery:
        numbers = self.numbers(self.products)
        self.problems += gaps(numbers) or ends_early(self.products, numbers, self.products)
        for here, (far, label, description) in self.far.items():
            there = self.by_label.get((far, label))
            if far not in self.products:
                self._adapter(here, far, label, description)
            elif there is None:
                self.problems.append(f"{named(here)} leads to {label!r} of {far}, which lists no such port")
            else:
                self.ends[here] = (there, self.facts[here].rate)
        return super().discovery()

    def _adapter(self, here: Port, far: str, label: str, description: str) -> None:
        """Enter both ends of the cable of a device without a record."""
        if SWITCHLIKE.match(description) or not re.fullmatch("[1-4]", label):
            self.problems.append(f"{far} ({description}) is cabled to {named(here)} but has no record of its own")
            return
        there, rate = Port(far, int(label)), self.facts[here].rate
        if there in self.ends:
            self.problems.append(f"{named(there)} is at two ports")
        self.device(there, "hca", description)
        self.ends[here], self.ends[there] = (there, rate), (here, rate)


def _closed(description: str) -> bool:
    """Say whether a description is whole: empty, N/A, or between quotation marks."""
    return description in ("", "N/A") or (len(description) > 1 and description[0] == description[-1] == '"')
