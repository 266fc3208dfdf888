"""The firmware's table of a virtual node's memory modules, as SMBIOS (DSP0134, structure type 17) lays them out."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from assay.lab.world import State

DDR5 = 0x22
DIMM = 0x09
EXTENDED = 0x7FFF
END_OF_TABLE = b"\x7f\x04\xfe\xff\0\0"


def table(dimms: Iterable[State]) -> bytes:
    """Return the table of a node's slots, the empty ones too."""
    return b"".join(_device(0x1100 + number, dimm) for number, dimm in enumerate(dimms)) + END_OF_TABLE


def _device(handle: int, dimm: State) -> bytes:
    mib = dimm["size_gib"] * 1024 if dimm["present"] else 0
    speeds = (dimm["speed_mts"], dimm["configured_mts"]) if dimm["present"] else (0, 0)
    words = [dimm["slot"], f"Bank {handle & 0xFF}", "Samsung", dimm["serial"], dimm["part"]]
    formatted = struct.pack(
        "<BBHHHHHHBBBBBHHBBBBBIH",
        *(17, 0x28, handle, 0x1000, 0xFFFE, 80, 64),
        *(EXTENDED if mib >= EXTENDED else mib, DIMM, 0, 1, 2, DDR5, 0x80),
        *(speeds[0], 3, 4, 0, 5, 2, mib if mib >= EXTENDED else 0, speeds[1]),
    )
    strings = b"\0".join(word.encode() for word in words)
    return formatted.ljust(0x28, b"\0") + strings + b"\0\0"
