r"""Reads the forwarding tables of switches, as `dump_fts` and `ibroute` print them.

```
table = "Unicast lids [" range "] of switch" … "guid" guid "(" name "):" { heading } { entry }
entry = lid port ":" "(" kind "portguid" guid ":" "'" name "')"
```

Port 0 is the switch itself. Lines of other forms, such as of multicast, are not read. Source: infiniband-diags 44,
`dump_fts.c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from assay.model.fabric.ports_and_cables import normalize_guid

TABLE = re.compile(r"^(?:Unicast|(Multicast)).* of switch .*?guid (?:0x)?([0-9a-fA-F]{1,16})\b")
ENTRY = re.compile(
    r"^0x[0-9a-fA-F]{1,8}\s+([0-9]{1,5})\s*:\s*\((?:[A-Za-z ]+ )?portguid (?:0x)?([0-9a-fA-F]{1,16}): '(.*)'\)"
)


class ForwardingEntry(NamedTuple):
    """Packets to the port `guid` of the device `name` leave the switch by `port`."""

    guid: str
    name: str
    port: int


class ForwardingTable(NamedTuple):
    """The unicast table of one switch, by its GUID."""

    switch: str
    entries: tuple[ForwardingEntry, ...]


def read_forwarding_tables(text: str) -> list[ForwardingTable]:
    """Return the table of each switch in a text."""
    return [ForwardingTable(switch, tuple(entries)) for switch, entries in _split(text).items()]


def _split(text: str) -> dict[str, list[ForwardingEntry]]:
    tables: dict[str, list[ForwardingEntry]] = {}
    entries: list[ForwardingEntry] | None = None
    for line in text.splitlines():
        if head := TABLE.match(line):
            entries = None if head[1] else tables.setdefault(normalize_guid(head[2]), [])
        elif entries is not None:
            entries.extend(_read_entry(line))
    return tables


def _read_entry(line: str) -> Iterator[ForwardingEntry]:
    found = ENTRY.match(line)
    if found and int(found[1]):
        yield ForwardingEntry(normalize_guid(found[2]), found[3].strip(), int(found[1]))
