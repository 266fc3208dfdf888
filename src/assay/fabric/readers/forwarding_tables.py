r"""Reads the unicast forwarding tables of switches, in the two forms that name destinations.

```
file  = { table }
table = "Unicast lids" … "of switch" … "guid" guid … { heading } { entry } n … "lids dumped"
entry = lid port ":" "(" node ")"                (dump_fts, ibroute -G)
      | lid port "#" node                        (opensm-lfts.dump)
node  = { text } "portguid" guid ":" "'" name "'"
```

LIDs are hexadecimal, ports decimal; port 0 is the switch itself, 255 none. Multicast tables are skipped. A table that
was cut off, has a line that cannot be read, or stands twice is left out. Sources: infiniband-diags 44 `dump_fts.c`;
OpenSM 3.3 `osm_dump.c`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from assay.fabric.readers.tool_text import number_lines
from assay.model.specs.fabric.cable import normalize_guid

NODES = re.compile(r"(?:Unicast|(Multicast)) m?lids .* of switch .*?guid (?:0x)?([0-9a-fA-F]{1,16})\b")
NODE_ENTRY = re.compile(r"0x([0-9a-fA-F]{1,8})\s+([0-9]{1,3})\b(?:.*?portguid (?:0x)?([0-9a-fA-F]{1,16}): '(.*)')?")
END = re.compile(r"[0-9]+ .*lids dumped")
NO_PORT = 255


class ForwardingEntry(NamedTuple):
    """Packets to a LID leave the switch by `port`. `guid` and `name` are "" where the line ends before them."""

    lid: int
    port: int
    guid: str
    name: str


class ForwardingTable(NamedTuple):
    """The unicast table of one switch, by its GUID."""

    switch: str
    entries: tuple[ForwardingEntry, ...]


class ForwardingTables(NamedTuple):
    """The tables of a text, one a switch, and what could not be read."""

    tables: list[ForwardingTable]
    problems: list[str]


def read_forwarding_tables(text: str) -> ForwardingTables:
    """Return the table of each switch in a text. Never raises."""
    reader = _TableReader()
    for number, line in number_lines(text):
        reader.read(number, line)
    reader.end_table()
    kept = [ForwardingTable(switch, tuple(entries)) for switch, entries in reader.tables.items()]
    return ForwardingTables([table for table in kept if table.switch not in reader.damaged], reader.problems)


class _TableReader:
    """Reads line by line. `switch` is the one whose table is being read, "" in a multicast one and before the first."""

    def __init__(self) -> None:
        self.tables: dict[str, list[ForwardingEntry]] = {}
        self.problems: list[str] = []
        self.damaged: set[str] = set()
        self.switch = ""
        self.has_end = False

    def read(self, number: int, line: str) -> None:
        """Read one line."""
        if head := NODES.match(line):
            self._begin_table("" if head[1] else normalize_guid(head[2]))
        elif self.switch and line:
            self._read_in_table(number, line)

    def _begin_table(self, switch: str) -> None:
        self.end_table()
        self.switch, self.has_end = switch, False
        if switch in self.tables:
            self._add_problem("stands twice")
        elif switch:
            self.tables[switch] = []

    def end_table(self) -> None:
        """Notice a table that was cut off."""
        if self.switch and not self.has_end:
            self._add_problem("was cut off")

    def _read_in_table(self, number: int, line: str) -> None:
        if END.match(line):
            self.has_end = True
        elif line.startswith("0x"):
            match = NODE_ENTRY.match(line)
            if match is None:
                self._add_problem(f"has line {number}, which cannot be read: {line[:60]!r}")
            elif 0 < (port := int(match[2])) < NO_PORT:
                guid = normalize_guid(match[3]) if match[3] else ""
                entry = ForwardingEntry(int(match[1], 16), port, guid, (match[4] or "").strip())
                self.tables[self.switch].append(entry)

    def _add_problem(self, problem: str) -> None:
        if self.switch not in self.damaged:
            self.problems.append(f"the forwarding table of {self.switch} {problem}")
        self.damaged.add(self.switch)
