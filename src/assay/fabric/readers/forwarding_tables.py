r"""Reads the unicast forwarding tables of switches, in the three forms that tools print.

```
file    = { table }
table   = ( "Unicast lids" … "of switch" … "guid" guid … | "dump_ucast_routes: Switch" guid ) { heading } { entry }
entry   = lid port ":" "(" node ")"                (dump_fts, ibroute -G)     ends with a line "n … lids dumped"
        | lid port "#" node                        (opensm-lfts.dump)         ends the same way
        | lid ":" ( port ":" … | "UNREACHABLE" )   (ibdiagnet2.fdbs, opensm.fdbs)
node    = { text } "portguid" guid ":" "'" name "'"
heading = text without a LID | "PLFT_NUM:" n
```

LIDs are hexadecimal, ports decimal; port 0 is the switch itself, 255 none. `.fdbs` names destinations by LID only, and
lists every LID from 1 on. Multicast tables are skipped. A table that was cut off, lost a line or stands twice is left
out, and so is that of a switch with several private tables (`PLFT_NUM` above 0): the file does not say which of them a
packet meets. Sources: infiniband-diags 44 `dump_fts.c`; OpenSM 3.3 `osm_dump.c`; ibutils 1.5 `ibdiagnet`, and public
readers of its files.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from assay.fabric.readers.truncated_output import number_lines
from assay.model.fabric.ports_and_cables import normalize_guid

NODES = re.compile(r"(?:Unicast|(Multicast)) m?lids .* of switch .*?guid (?:0x)?([0-9a-fA-F]{1,16})\b")
LIDS = re.compile(r"\w*dump_ucast_routes: Switch (?:0x)?([0-9a-fA-F]{1,16})\b")
NODE_ENTRY = re.compile(r"0x([0-9a-fA-F]{1,8})\s+([0-9]{1,3})\b(?:.*?portguid (?:0x)?([0-9a-fA-F]{1,16}): '(.*)')?")
LID_ENTRY = re.compile(r"0x([0-9a-fA-F]{1,8})\s*:\s*(?:([0-9]{1,3})\s*:|UNREACHABLE)")
END = re.compile(r"[0-9]+ .*lids dumped")
PRIVATE = re.compile(r"PLFT_NUM:\s*([1-9][0-9]*)")
NO_PORT = 255


class ForwardingEntry(NamedTuple):
    """Packets to a LID leave the switch by `port`. `guid` and `name` are "" where only the LID stands."""

    lid: int
    port: int
    guid: str = ""
    name: str = ""


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
    reader.end_table(ends_with_text=True)
    kept = [ForwardingTable(switch, tuple(entries)) for switch, entries in reader.tables.items()]
    return ForwardingTables([table for table in kept if table.switch not in reader.damaged], reader.problems)


class _TableReader:
    """Reads line by line. `switch` is the one whose table is being read, "" in a multicast one and before the first."""

    def __init__(self) -> None:
        self.tables: dict[str, list[ForwardingEntry]] = {}
        self.problems: list[str] = []
        self.damaged: set[str] = set()
        self.switch = ""
        self.next_lid, self.highest_lid = 1, 0
        self.is_by_lid = self.has_end = False

    def read(self, number: int, line: str) -> None:
        """Read one line."""
        if head := NODES.match(line):
            self._begin_table("" if head[1] else normalize_guid(head[2]), is_by_lid=False)
        elif head := LIDS.match(line):
            self._begin_table(normalize_guid(head[1]), is_by_lid=True)
        elif self.switch and line:
            self._read_in_table(number, line)

    def _begin_table(self, switch: str, *, is_by_lid: bool) -> None:
        self.end_table(ends_with_text=False)
        self.switch, self.is_by_lid, self.has_end, self.next_lid = switch, is_by_lid, False, 1
        if switch in self.tables:
            self._add_problem("stands twice")
        elif switch:
            self.tables[switch] = []

    def end_table(self, *, ends_with_text: bool) -> None:
        """Notice a table that was cut off. One by LID has no mark of its end: the others tell how long it should be."""
        if not self.switch:
            return
        last = self.next_lid - 1
        if not (self.has_end or self.is_by_lid) or (self.is_by_lid and ends_with_text and last < self.highest_lid):
            self._add_problem("was cut off")
        self.highest_lid = max(self.highest_lid, last)

    def _read_in_table(self, number: int, line: str) -> None:
        if END.match(line):
            self.has_end = True
        elif private := PRIVATE.match(line):
            self._add_problem(f"is one of several (PLFT_NUM {private[1]})")
        elif line.startswith("0x"):
            entry = self._read_entry(line)
            if entry is None:
                self._add_problem(f"has line {number}, which cannot be read: {line[:60]!r}")
            elif 0 < entry.port < NO_PORT:
                self.tables[self.switch].append(entry)

    def _read_entry(self, line: str) -> ForwardingEntry | None:
        if not self.is_by_lid:
            found = NODE_ENTRY.match(line)
            guid = normalize_guid(found[3]) if found and found[3] else ""
            return ForwardingEntry(int(found[1], 16), int(found[2]), guid, (found[4] or "").strip()) if found else None
        found = LID_ENTRY.match(line)
        if found and int(found[1], 16) == self.next_lid:
            self.next_lid += 1
            return ForwardingEntry(int(found[1], 16), int(found[2] or NO_PORT))
        return None

    def _add_problem(self, what: str) -> None:
        if self.switch not in self.damaged:
            self.problems.append(f"the forwarding table of {self.switch} {what}")
        self.damaged.add(self.switch)
