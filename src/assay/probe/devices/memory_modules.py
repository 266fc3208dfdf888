"""Memory modules, from the firmware's table: which slot holds what, how fast it may run, and how fast it runs.

The firmware's own table of the machine (SMBIOS, DSP0134), as the kernel hands it on to root.

The host's memory: its modules, what they got wrong, and what the processors reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from assay.model.reading import absent, failed, value
from assay.probe.devices.hardware_error_counters import read_edac, read_machine_checks
from assay.probe.node_access import LazyTree, NodeRoot, Tree, leaf_for_error

DMI_TABLE = "/sys/firmware/dmi/tables/DMI"
MAX_DMI_BYTES = 1 << 20
END_OF_TABLE = 127


class DmiStructure(NamedTuple):
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


def parse_dmi_table(table: bytes) -> Iterator[DmiStructure]:
    """Yield the structures of a table in order. Raises ValueError for one that does not end."""
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0:
            raise ValueError(f"the structure at {at} does not end")
        strings = table[at + length : end].split(b"\0")
        yield DmiStructure(kind, table[at : at + length], [text.decode(errors="replace") for text in strings])
        if kind == END_OF_TABLE:
            return
        at = end + 2


MEMORY_DEVICE = 17
UNKNOWN_SIZE = 0xFFFF
EXTENDED_SIZE = 0x7FFF
IN_KIB = 0x8000


def read_dimms(root: NodeRoot) -> Tree:
    """Return the branch of the memory: `dimms` that are plugged in by slot, and `empty_slots`. Needs root."""
    try:
        table = root.read_start(DMI_TABLE, MAX_DMI_BYTES)
    except OSError as error:
        return leaf_for_error(DMI_TABLE, error)
    try:
        devices = name_by_slot(one for one in parse_dmi_table(table) if one.type == MEMORY_DEVICE)
    except ValueError as error:
        return failed(f"{DMI_TABLE}: {error}")
    if not devices:
        return absent(f"{DMI_TABLE} lists no memory device")
    plugged = {slot: _device(device) for slot, device in devices.items() if device.number(0x0C, 2) != 0}
    return {"dimms": plugged, "empty_slots": value([slot for slot in devices if slot not in plugged])}


def name_by_slot(devices: Iterable[DmiStructure]) -> dict[str, DmiStructure]:
    """Return the devices by the name of their slot, with the bank's where a name comes twice."""
    found: dict[str, DmiStructure] = {}
    for number, device in enumerate(devices):
        slot = (device.text(0x10) or f"device {number}").replace("/", "-")
        again = f"{slot} {device.text(0x11)}".strip() if slot in found else slot
        found[again if again not in found else f"{slot} device {number}"] = device
    return found


def _device(device: DmiStructure) -> Tree:
    return {
        "size_bytes": _size(device, device.number(0x0C, 2)),
        "speed_mts": _speed(device, 0x15, 0x54),
        "configured_mts": _speed(device, 0x20, 0x58),
        "vendor": _text(device, 0x17, "vendor"),
        "serial": _text(device, 0x18, "serial number"),
        "part": _text(device, 0x1A, "part number"),
    }


def _size(device: DmiStructure, size: int | None) -> Tree:
    """Return the size: a word in MiB, or in KiB where its top bit says so, or a longer field for the large ones."""
    if size == EXTENDED_SIZE:
        mib = device.number(0x1C, 4)
        return value((mib & 0x7FFFFFFF) << 20) if mib is not None else failed("the extended size is missing")
    if size is None or size == UNKNOWN_SIZE:
        return absent("the firmware does not know its size")
    return value((size & EXTENDED_SIZE) << (10 if size & IN_KIB else 20))


def _speed(device: DmiStructure, short: int, long: int) -> Tree:
    """Return a speed in millions of transfers a second."""
    speed = device.number(short, 2)
    speed = device.number(long, 4) if speed == UNKNOWN_SIZE else speed
    return value(speed) if speed else absent("the firmware does not know its speed")


def _text(device: DmiStructure, offset: int, what: str) -> Tree:
    text = device.text(offset)
    return value(text) if text else absent(f"the firmware gives no {what}")


def read_memory(root: NodeRoot) -> LazyTree:
    """Return the `memory` branch."""
    return {
        "firmware": partial(read_dimms, root),
        "edac": partial(read_edac, root),
        "machine_checks": partial(read_machine_checks, root),
    }
