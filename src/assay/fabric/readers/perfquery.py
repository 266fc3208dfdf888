r"""Reads what `perfquery` and `perfquery -x` print, once or many times.

```
file  = { block }
block = "#" kind "counters: Lid" lid "port" port [ "(" masks ")" ] { line }
kind  = "Port" | "Port extended" | "PortRcvErrorDetails" | "PortXmitDiscardDetails"
masks = "CapMask:" hex [ "CapMask2:" hex ]
line  = name ":" { "." } value
```

- Classic counters stop at their maximum (65535, 255, 15). Then they are `saturated`: the true count may be higher.
- `-x` counts in 64 bits. Its error counters are valid only if CapMask2 has bit 1 (additional extended counters).
  Otherwise tools print zeros, which are not read.
- Port 255 is the sum of all ports, not a port.
- The text names the port by LID. `guids` maps it to a GUID (`lid_addresses`); without it the GUID reads `lid 7`.
- `CounterSelect` and `PortSelect` are no counters.

A block that lacks counters of its kind is a problem.
Source: infiniband-diags 44, `perfquery.c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.fabric.discovery import (
    CLASSIC_COUNTER_MAX,
    FabricDiscovery,
    PortFacts,
    find_saturated_counters,
    merge_port_facts,
)
from assay.fabric.readers.truncated_output import find_stderr_problems, find_truncation, number_lines
from assay.model.specs.fabric.ports_and_cables import PortId

HEADER = re.compile(
    r"#\s*(\w[\w ]*?) counters: Lid ([0-9]{1,5}) port ([0-9]{1,5})"
    r"(?: \(CapMask: 0x([0-9A-Fa-f]{1,8})(?: CapMask2: 0x([0-9A-Fa-f]{1,8}))?\))?"
)
LINE = re.compile(r"(\w{1,60}):\.*(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})")
SELECTORS = {"PortSelect", "CounterSelect", "CounterSelect2"}
DATA = {
    "PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortUnicastXmitPkts", "PortUnicastRcvPkts",
    "PortMulticastXmitPkts", "PortMulticastRcvPkts",
}  # fmt: skip
ERRORS = CLASSIC_COUNTER_MAX.keys() - DATA
CLASSIC = CLASSIC_COUNTER_MAX.keys()
DETAILS: Mapping[str, set[str]] = {
    "PortRcvErrorDetails": {
        "PortLocalPhysicalErrors", "PortMalformedPktErrors", "PortBufferOverrunErrors", "PortDLIDMappingErrors",
        "PortVLMappingErrors", "PortLoopingErrors",
    },
    "PortXmitDiscardDetails": {
        "PortInactiveDiscards", "PortNeighborMTUDiscards", "PortSwLifetimeLimitDiscards",
        "PortSwHOQLifetimeLimitDiscards",
    },
}  # fmt: skip
ADDITIONAL = 1 << 1
"""CapMask2: the extended attribute has the error counters too."""
ALL_PORTS = 255


def parse(text: str, stderr: str = "", guids: Mapping[int, str] | None = None) -> FabricDiscovery:
    """Read counters. `guids` are the devices' GUIDs by LID. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr) + find_truncation(text)
    facts: list[PortFacts] = []
    block: _CounterBlock | None = None
    for number, line in number_lines(text):
        if header := HEADER.fullmatch(line):
            facts += block.finish(problems, guids or {}) if block else []
            block = _CounterBlock(header)
        elif (found := LINE.fullmatch(line)) and block:
            if found[1] in block.counters:
                problems.append(f"line {number}: {found[1]} occurs twice, so it is not clear which port it belongs to")
            block.counters[found[1]] = int(found[2], 16 if found[2].startswith("0x") else 10)
        elif line:
            problems.append(f"line {number} cannot be read: {line[:80]!r}")
    facts += block.finish(problems, guids or {}) if block else []
    if not facts and not problems:
        problems.append("no port's counters were found")
    return FabricDiscovery([], {}, tuple(problems), merge_port_facts(facts))


class _CounterBlock:
    """The counters of one kind of one port."""

    def __init__(self, header: re.Match[str]) -> None:
        self.kind, self.lid, self.port = header[1], int(header[2]), int(header[3])
        self.additional = bool(int(header[5] or "0", 16) & ADDITIONAL)
        self.counters: dict[str, int] = {}

    def finish(self, problems: list[str], guids: Mapping[int, str]) -> list[PortFacts]:
        """Return the facts of the port, none for a sum. Add a problem for each counter that is missing."""
        where = f"{self.kind} counters of LID {self.lid} port {self.port}"
        needed = self._needed()
        if needed is None:
            problems.append(f"{where}: this kind is not read")
            return []
        if lacking := sorted(needed - self.counters.keys()):
            problems.append(f"{where}: {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing")
        if self.port == ALL_PORTS:
            return []
        if self.lid not in guids:
            problems.append(f"{where}: the device of this LID is not known")
        counters = {name: count for name, count in self.counters.items() if name not in SELECTORS}
        if self.kind == "Port extended" and not self.additional:
            counters = {name: count for name, count in counters.items() if name in DATA}
        port = PortId(guids.get(self.lid, f"lid {self.lid}"), self.port)
        return [PortFacts(port, counters=counters, saturated=self._saturated(counters))]

    def _needed(self) -> set[str] | None:
        if self.kind == "Port":
            return set(CLASSIC)
        if self.kind == "Port extended":
            return DATA | (ERRORS if self.additional else set())
        return DETAILS.get(self.kind)

    def _saturated(self, counters: Mapping[str, int]) -> frozenset[str]:
        if self.kind == "Port":
            return find_saturated_counters(counters)
        narrow = 0xFFFF if self.kind in DETAILS else 1 << 64
        return frozenset(name for name, count in counters.items() if count >= narrow)
