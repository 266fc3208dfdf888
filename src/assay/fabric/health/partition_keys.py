"""Reads the partition table of one port as `smpquery pkeys` prints it.

```
table    = { row } capacity
row      = index ":" key { key }          (8 keys; empty entries are 0x0000)
key      = "0x" 4 hex digits
capacity = n "pkeys capacity for this port"
```

Rows are printed in blocks of 32 entries, also where the port has room for fewer. The table does not say whose it is.
Source: infiniband-diags 44, `smpquery.c`, `pkey_table`.

The partitions that a port is a member of, against those that the design gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from assay.model.fabric.design_cables_and_partitions import FULL_MEMBER_BIT


def describe_pkey_differences(designed: Iterable[int], found: Iterable[int]) -> list[str]:
    """Return in words how the P_Keys of a port (of 16 bits) differ from the designed ones, a partition each."""
    want, have = set(designed), set(found)
    lacking, beyond = want - have, have - want
    return [
        _describe_difference(base, lacking, beyond)
        for base in sorted({key % FULL_MEMBER_BIT for key in lacking | beyond})
    ]


def _describe_difference(base: int, lacking: set[int], beyond: set[int]) -> str:
    wanted, there = ([key for key in (base, base | FULL_MEMBER_BIT) if key in keys] for keys in (lacking, beyond))
    if wanted and there:
        return f"is a {_membership(there[0])} member of 0x{base:04x}, designed as a {_membership(wanted[0])} one"
    if wanted:
        return f"is no {' or '.join(map(_membership, wanted))} member of 0x{base:04x}"
    return f"is a {' and '.join(map(_membership, there))} member of 0x{base:04x}, which is not designed"


def _membership(key: int) -> str:
    return "full" if key & FULL_MEMBER_BIT else "limited"


ROW = re.compile(r"([0-9]{1,5}):((?: 0x[0-9a-fA-F]{4}){8})")
CAPACITY = re.compile(r"([0-9]{1,5}) pkeys capacity for this port")
BLOCK = 32


@dataclass
class PkeyTable:
    """One table, entered line by line."""

    entries: list[int] = field(default_factory=list)
    capacity: int = 0
    skipped: bool = False

    def add_line(self, line: str) -> bool:
        """Enter a line; say whether it is one of a table. A row that is not the next one follows on a lost one."""
        if found := ROW.fullmatch(line):
            self.skipped |= int(found[1]) != len(self.entries) or bool(self.capacity)
            self.entries += [int(key, 16) for key in found[2].split()]
        elif found := CAPACITY.fullmatch(line):
            self.skipped |= bool(self.capacity)
            self.capacity = int(found[1])
        return bool(found)

    @property
    def is_complete(self) -> bool:
        """Whether no row was lost."""
        blocks = -(-self.capacity // BLOCK)
        return self.capacity > 0 and not self.skipped and len(self.entries) == blocks * BLOCK

    @property
    def pkeys(self) -> frozenset[int]:
        """The P_Keys of the table. A key of which only the bit of membership is set is none."""
        return frozenset(key for key in self.entries if key % FULL_MEMBER_BIT)
