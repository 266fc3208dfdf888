"""The firmware's own table of the machine (SMBIOS, DSP0134), as the kernel hands it on to root."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

TABLE = "/sys/firmware/dmi/tables/DMI"
LARGEST = 1 << 20
END = 127


class Structure(NamedTuple):
    """One structure: its type, its formatted part with the header, and its strings."""

    type: int
    data: bytes
    strings: list[str]

    def number(self, offset: int, size: int) -> int | None:
        """Return the number at an offset, None for one that this version of the structure lacks."""
        part = self.data[offset : offset + size]
        return int.from_bytes(part, "little") if len(part) == size else None

    def text(self, offset: int) -> str:
        """Return the string that the byte at an offset numbers, "" for none."""
        index = self.number(offset, 1)
        return self.strings[index - 1].strip() if index and index <= len(self.strings) else ""


def structures(table: bytes) -> Iterator[Structure]:
    """Yield the structures of a table in order. Raises ValueError for one that does not end."""
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0:
            raise ValueError(f"the structure at {at} does not end")
        strings = table[at + length : end].split(b"\0")
        yield Structure(kind, table[at : at + length], [text.decode(errors="replace") for text in strings])
        if kind == END:
            return
        at = end + 2
