"""Reads the counters of ports that `perfquery` and `ibqueryerrors` print."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from assay.fabric.discovery import (
    CLASSIC_COUNTER_MAX,
    FabricDiscovery,
    PortFacts,
    find_saturated_counters,
    merge_port_facts,
)
from assay.fabric.readers.tool_text import find_stderr_problems, find_truncation, number_lines
from assay.model.specs.fabric.cable import PortId, normalize_guid

HEADER = re.compile(
    r"#\s*(\w[\w ]*?) counters: Lid ([0-9]{1,5}) port ([0-9]{1,5})"
    r"(?: \(CapMask: 0x([0-9A-Fa-f]{1,8})(?: CapMask2: 0x([0-9A-Fa-f]{1,8}))?\))?"
)
LINE = re.compile(r"(\w{1,60}):\.*(0x[0-9a-fA-F]{1,16}|[0-9]{1,20})")
SELECTORS = {"PortSelect", "CounterSelect", "CounterSelect2"}
DATA = {
    "PortXmitData",
    "PortRcvData",
    "PortXmitPkts",
    "PortRcvPkts",
    "PortUnicastXmitPkts",
    "PortUnicastRcvPkts",
    "PortMulticastXmitPkts",
    "PortMulticastRcvPkts",
}
ERRORS = CLASSIC_COUNTER_MAX.keys() - DATA
CLASSIC = CLASSIC_COUNTER_MAX.keys()
DETAILS: Mapping[str, set[str]] = {
    "PortRcvErrorDetails": {
        "PortLocalPhysicalErrors",
        "PortMalformedPktErrors",
        "PortBufferOverrunErrors",
        "PortDLIDMappingErrors",
        "PortVLMappingErrors",
        "PortLoopingErrors",
    },
    "PortXmitDiscardDetails": {
        "PortInactiveDiscards",
        "PortNeighborMTUDiscards",
        "PortSwLifetimeLimitDiscards",
        "PortSwHOQLifetimeLimitDiscards",
    },
}
ADDITIONAL = 1 << 1
"""CapMask2: the extended attribute has the error counters too."""
ALL_PORTS = 255
NODE = re.compile(r'(Errors|Data Counters) for 0x([0-9a-fA-F]{1,16}) "(.*)"')
PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port (ALL|[0-9]{1,5}):((?: ?\[[^\[\]]*\])*)")
COUNTER = re.compile(r"\[(\w{1,60}) == ([0-9]{1,20})(?: \([^()]*\))?\]")
SUMMARY = re.compile(r"## Summary: ([0-9]{1,9}) nodes checked, ([0-9]{1,9}) bad nodes found")
TAIL = re.compile(r"##\s+[0-9]+ ports checked, [0-9]+ ports have errors beyond threshold|## Suppressed:.*")
THRESHOLDS = re.compile(r"## Thresholds:\s*(.*)")
KNOWN = CLASSIC_COUNTER_MAX.keys() | DATA


def parse_perfquery(text: str, stderr: str = "", guids: Mapping[int, str] | None = None) -> FabricDiscovery:
    """Read counters. `guids` are the devices' GUIDs by LID. Never raises: `problems` names what cannot be read.

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
    problems = find_stderr_problems(stderr) + find_truncation(text)
    facts: list[PortFacts] = []
    block: _CounterBlock | None = None
    for number, line in number_lines(text):
        if header := HEADER.fullmatch(line):
            facts += block.finish(problems, guids or {}) if block else []
            block = _CounterBlock(header)
        elif (match := LINE.fullmatch(line)) and block:
            if match[1] in block.counters:
                problems.append(f"line {number}: {match[1]} occurs twice, so it is not clear which port it belongs to")
            block.counters[match[1]] = int(match[2], 16 if match[2].startswith("0x") else 10)
        elif line:
            problems.append(f"line {number} cannot be read: {line[:80]!r}")
    facts += block.finish(problems, guids or {}) if block else []
    if not facts and not problems:
        problems.append("no port's counters were found")
    return FabricDiscovery([], {}, tuple(problems), merge_port_facts(facts))


class _CounterBlock:
    """The counters of one kind of one port."""

    def __init__(self, header: re.Match[str]) -> None:
        self.kind = header[1]
        self.lid = int(header[2])
        self.port = int(header[3])
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


def parse_ibqueryerrors(text: str, stderr: str = "") -> FabricDiscovery:
    """Read errors. Never raises: `problems` names what cannot be read.

    ```
    file    = { node } [ summary ]
    node    = ("Errors for" | "Data Counters for") guid '"' desc '"' { sum | port [ link ] }
    sum     = "GUID" guid "port ALL:" { counter }
    port    = "GUID" guid "port" n ":" { counter }
    counter = "[" name "==" value [ "(" rounded ")" ] "]"
    link    = "Link info:" text                              (not read: the topology readers have more)
    summary = "## Summary:" n "nodes checked," n "bad nodes found"
              "##" n "ports checked," n "ports have errors beyond threshold"
              "## Thresholds:" [ text ] "## Suppressed:" [ text ]
    ```

    - Only ports with errors are listed, so this is no topology.
    - `port ALL` is a sum, not a port. It shows a lost line: if no threshold hides a port, the ports' counters add up to
      at least the sum.
    - The summary counts a switch with errors as one more port, in some versions; `bad nodes` is exact.
    - Classic counters stop at 65535, 255 or 15: those are `saturated`.
    - `--details` names some counters wrongly (PortLocalPhysicalErrors as PortInactiveDiscards), so the details are not
      read. `perfquery -E` names them correctly.
    Source: infiniband-diags 44, `ibqueryerrors.c`.
    """
    reader = _Reader(find_stderr_problems(stderr))
    for number, line in number_lines(text):
        reader.read_line(number, line)
    return FabricDiscovery([], {}, tuple(reader.finish()), merge_port_facts(reader.facts))


class _Reader:
    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        self.facts: list[PortFacts] = []
        self.node = ""
        self.bad: set[str] = set()
        self.sums: dict[str, dict[str, int]] = {}
        self.bad_claimed: int | None = None
        self.thresholds: str | None = None
        self.ended = False

    def read_line(self, number: int, line: str) -> None:
        if match := PORT.fullmatch(line):
            self._add_port(number, match)
        elif match := NODE.fullmatch(line):
            self.node = normalize_guid(match[2])
            self.bad |= {self.node} if match[1] == "Errors" else set()
        elif match := SUMMARY.fullmatch(line):
            self.bad_claimed = int(match[2])
        elif match := THRESHOLDS.fullmatch(line):
            self.thresholds = match[1]
        elif TAIL.fullmatch(line):
            self.ended = line.startswith("## Suppressed")
        elif line and not line.startswith("Link info:"):
            self.problems.append(f"line {number} cannot be read: {line[:80]!r}")

    def _add_port(self, number: int, match: re.Match[str]) -> None:
        counters = COUNTER.findall(match[3])
        if len(counters) != match[3].count("["):
            self.problems.append(f"line {number}: not every counter can be read")
        if normalize_guid(match[1]) != self.node:
            self.problems.append(f"line {number}: {normalize_guid(match[1])} is not the node that was announced")
        counts = {name: int(count) for name, count in counters if name in KNOWN}
        if match[2] == "ALL":
            self.sums[self.node] = counts
            return
        port = PortId(normalize_guid(match[1]), int(match[2]))
        narrow = {name: count for name, count in counts.items() if name not in DATA}
        self.facts.append(PortFacts(port, counters=counts, saturated=find_saturated_counters(narrow)))

    def finish(self) -> list[str]:
        """Return all problems, with those that only the whole text shows."""
        if self.bad_claimed is None or not self.ended:
            return [*self.problems, "the summary at the end is missing: the text was cut off"]
        if self.bad_claimed != len(self.bad):
            self.problems.append(f"{self.bad_claimed} bad nodes were found, but {len(self.bad)} are listed")
        listed = {facts.port.guid for facts in self.facts}
        self.problems += [f"no port of {guid} is listed" for guid in sorted(self.bad - listed)]
        if self.thresholds == "":
            self.problems += self._compare_sums()
        return self.problems

    def _compare_sums(self) -> list[str]:
        """Return a problem for each sum that is more than the counters of the listed ports."""
        added: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for facts in self.facts:
            added[facts.port.guid].update(facts.counters)
        return [
            f"the ports of {node} add up to {added[node][name]} {name}, but their sum is {total}"
            for node, sums in self.sums.items()
            for name, total in sums.items()
            if name not in DATA and added[node][name] < total
        ]
