"""Partition keys (P_Keys) of a port: compares them with the design, and reads the table of `smpquery pkeys`.

```
table    = { row } capacity
row      = index ":" key { key }          (8 keys; empty entries are 0x0000)
key      = "0x" 4 hex digits
capacity = n "pkeys capacity for this port"
```

Rows come in blocks of 32 entries, also where the port has room for fewer. The table does not name its port.
Source: infiniband-diags 44, `smpquery.c`, `pkey_table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from assay.model.specs.fabric.design_cables_and_partitions import FULL_MEMBER_BIT


def describe_pkey_differences(designed: Iterable[int], found: Iterable[int]) -> list[str]:
    """Return how the 16-bit P_Keys of a port differ from the designed ones, in words, one text a partition."""
    missing, unexpected = set(designed) - set(found), set(found) - set(designed)
    bases = {key % FULL_MEMBER_BIT for key in missing | unexpected}
    return [_describe_difference(base, missing, unexpected) for base in sorted(bases)]


def _describe_difference(base: int, missing: set[int], unexpected: set[int]) -> str:
    wanted, present = ([key for key in (base, base | FULL_MEMBER_BIT) if key in keys] for keys in (missing, unexpected))
    if wanted and present:
        return f"is a {_membership(present[0])} member of 0x{base:04x}, designed as a {_membership(wanted[0])} one"
    if wanted:
        return f"is no {' or '.join(map(_membership, wanted))} member of 0x{base:04x}"
    return f"is a {' and '.join(map(_membership, present))} member of 0x{base:04x}, which is not designed"


def _membership(key: int) -> str:
    return "full" if key & FULL_MEMBER_BIT else "limited"


ROW = re.compile(r"([0-9]{1,5}):((?: 0x[0-9a-fA-F]{4}){8})")
CAPACITY = re.compile(r"([0-9]{1,5}) pkeys capacity for this port")
BLOCK = 32


@dataclass
class PkeyTable:
    """The partition table of one port, added line by line."""

    entries: list[int] = field(default_factory=list)
    capacity: int = 0
    skipped: bool = False

    def add_line(self, line: str) -> bool:
        """Add a line, and return whether it belongs to a table. A row out of sequence shows that one was lost."""
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
        """The P_Keys of the table. An entry with no bit but the membership bit is empty."""
        return frozenset(key for key in self.entries if key % FULL_MEMBER_BIT)
