"""Reads the counters of ports that `ibqueryerrors` prints."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from assay.fabric.discovery import (
    CLASSIC_COUNTER_MAX,
    FabricDiscovery,
    PortFacts,
    find_saturated_counters,
    merge_port_facts,
)
from assay.fabric.readers.tool_text import find_stderr_problems, number_lines
from assay.model.specs.fabric.cable import PortId, normalize_guid

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
NODE = re.compile(r'(Errors|Data Counters) for 0x([0-9a-fA-F]{1,16}) "(.*)"')
PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port (ALL|[0-9]{1,5}):((?: ?\[[^\[\]]*\])*)")
COUNTER = re.compile(r"\[(\w{1,60}) == ([0-9]{1,20})(?: \([^()]*\))?\]")
SUMMARY = re.compile(r"## Summary: ([0-9]{1,9}) nodes checked, ([0-9]{1,9}) bad nodes found")
TAIL = re.compile(r"##\s+[0-9]+ ports checked, [0-9]+ ports have errors beyond threshold|## Suppressed:.*")
THRESHOLDS = re.compile(r"## Thresholds:\s*(.*)")
KNOWN = CLASSIC_COUNTER_MAX.keys() | DATA


def parse(text: str, stderr: str = "") -> FabricDiscovery:
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
      read.
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
