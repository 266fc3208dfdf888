"""Reads the host's memory: its modules from the firmware's table, and the errors that the kernel counts since boot.

The table is SMBIOS (DSP0134). The kernel lets only root read it. Errors come from EDAC and from the machine checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import LazyTree, NodeRoot, leaf_for_error

DMI_TABLE = "/sys/firmware/dmi/tables/DMI"
MAX_DMI_BYTES = 1 << 20
END_OF_TABLE = 127

MEMORY_DEVICE = 17
UNKNOWN_SIZE = 0xFFFF
EXTENDED_SIZE = 0x7FFF
IN_KIB = 0x8000
EDAC = "/sys/devices/system/edac/mc"

INTERRUPTS = "/proc/interrupts"
ARM = (b"Err:", b"IPI0")
X86 = b"LOC:"  # the local timers, which every x86 kernel counts
MACHINE_CHECK_LINES = {  # arch/x86/kernel/irq.c
    "exceptions": b"MCE:",
    "polls": b"MCP:",
    "thresholds": b"THR:",
    "deferred": b"DFR:",
}


def read_memory(root: NodeRoot) -> LazyTree:
    """Return the `memory` branch: modules by the `firmware`, errors by `edac`, and `machine_checks`."""
    return {
        "firmware": partial(read_dimms, root),
        "edac": partial(read_edac, root),
        "machine_checks": partial(read_machine_checks, root),
    }


def read_dimms(root: NodeRoot) -> ReadingTree:
    """Return the branch `memory.firmware`: the plugged-in `dimms` by slot, and the names of `empty_slots`."""
    try:
        table = root.read_start(DMI_TABLE, MAX_DMI_BYTES)
    except OSError as error:
        return leaf_for_error(DMI_TABLE, error)
    try:
        structures = [structure for structure in parse_dmi_table(table) if structure.type == MEMORY_DEVICE]
    except ValueError as error:
        return failed(f"{DMI_TABLE}: {error}")
    devices = name_by_slot(structures)
    if not devices:
        return absent(f"{DMI_TABLE} lists no memory device")
    plugged = {slot: _device(device) for slot, device in devices.items() if device.number(0x0C, 2) != 0}
    return {"dimms": plugged, "empty_slots": value([slot for slot in devices if slot not in plugged])}


def name_by_slot(devices: Iterable[DmiStructure]) -> dict[str, DmiStructure]:
    """Return the devices by slot name; the bank's name is added where two slots have the same name."""
    modules: dict[str, DmiStructure] = {}
    for number, device in enumerate(devices):
        slot = (device.text(0x10) or f"device {number}").replace("/", "-")
        name = f"{slot} {device.text(0x11)}".strip() if slot in modules else slot
        modules[name if name not in modules else f"{slot} device {number}"] = device
    return modules


def _device(device: DmiStructure) -> ReadingTree:
    return {
        "size_bytes": _size(device, device.number(0x0C, 2)),
        "speed_mts": _speed(device, 0x15, 0x54),
        "configured_mts": _speed(device, 0x20, 0x58),
        "vendor": _text(device, 0x17, "vendor"),
        "serial": _text(device, 0x18, "serial number"),
        "part": _text(device, 0x1A, "part number"),
    }


def _size(device: DmiStructure, size: int | None) -> ReadingTree:
    """Return the size in bytes. The word is in MiB, or in KiB where its top bit is set; large sizes have a long field.

    Source: DSP0134, Memory Device (type 17), Size and Extended Size.
    """
    if size == EXTENDED_SIZE:
        mib = device.number(0x1C, 4)
        return value((mib & 0x7FFFFFFF) << 20) if mib is not None else failed("the extended size is missing")
    if size is None or size == UNKNOWN_SIZE:
        return absent("the firmware does not know its size")
    return value((size & EXTENDED_SIZE) << (10 if size & IN_KIB else 20))


def _speed(device: DmiStructure, short: int, long: int) -> ReadingTree:
    """Return a speed in millions of transfers a second (MT/s)."""
    speed = device.number(short, 2)
    speed = device.number(long, 4) if speed == UNKNOWN_SIZE else speed
    return value(speed) if speed else absent("the firmware does not know its speed")


def _text(device: DmiStructure, offset: int, field: str) -> ReadingTree:
    text = device.text(offset)
    return value(text) if text else absent(f"the firmware gives no {field}")


class DmiStructure(NamedTuple):
    """One structure of the table: its type, its formatted part with the header, and its strings."""

    type: int
    data: bytes
    strings: list[str]

    def number(self, offset: int, size: int) -> int | None:
        """Return the number at an offset, None where this version of the structure lacks it."""
        part = self.data[offset : offset + size]
        return int.from_bytes(part, "little") if len(part) == size else None

    def text(self, offset: int) -> str:
        """Return the string whose number is the byte at an offset, "" for none."""
        index = self.number(offset, 1)
        return self.strings[index - 1].strip() if index and index <= len(self.strings) else ""


def parse_dmi_table(table: bytes) -> Iterator[DmiStructure]:
    """Yield the structures of a table in order. Raises ValueError where a structure does not end."""
    at = 0
    while at + 4 <= len(table):
        kind = table[at]
        length = table[at + 1]
        end = table.find(b"\0\0", at + length)
        if length < 4 or end < 0:
            raise ValueError(f"the structure at {at} does not end")
        strings = table[at + length : end].split(b"\0")
        yield DmiStructure(kind, table[at : at + length], [text.decode(errors="replace") for text in strings])
        if kind == END_OF_TABLE:
            return
        at = end + 2


def read_edac(root: NodeRoot) -> LazyTree:
    """Return the `memory.edac` branch by controller; `unplaced` counts errors that name no module."""
    try:
        names = [name for name in root.list_names(EDAC) if name.startswith("mc") and name[2:].isdecimal()]
    except OSError as error:
        return leaf_for_error(EDAC, error)
    none = absent(f"{EDAC} has no controller: no EDAC driver took the memory controllers")
    return {name: _controller(root, f"{EDAC}/{name}") for name in names} or none


def _controller(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "unplaced": {
            "corrected": root.defer_read(f"{folder}/ce_noinfo_count", int),
            "uncorrected": root.defer_read(f"{folder}/ue_noinfo_count", int),
        },
        "dimms": partial(_modules, root, folder),
    }


def _modules(root: NodeRoot, folder: str) -> LazyTree:
    try:
        names = [name for name in root.list_names(folder) if name.rstrip("0123456789") in ("dimm", "rank")]
    except OSError as error:
        return leaf_for_error(folder, error)
    return {name: _module(root, f"{folder}/{name}") for name in names} or absent(f"{folder} has no module")


def _module(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "label": root.defer_read(f"{folder}/dimm_label"),
        "corrected": root.defer_read(f"{folder}/dimm_ce_count", int),
        "uncorrected": root.defer_read(f"{folder}/dimm_ue_count", int),
    }


def read_machine_checks(root: NodeRoot) -> ReadingTree:
    """Return the `memory.machine_checks` branch, summed over all CPUs; it is empty on Arm, whose kernel counts none.

    `exceptions` counts machine checks that were raised, `polls` the kernel's polls for them. `thresholds` counts
    interrupts for many corrected errors, `deferred` (AMD) those for bad data that nothing has used yet.
    """
    try:
        with open(root.local_path(INTERRUPTS), "rb") as file:  # noqa: PTH123  # as in node_access
            sums = sum_interrupts(file)
    except OSError as error:
        return leaf_for_error(INTERRUPTS, error)
    if not sums:
        return absent(f"{INTERRUPTS} counts nothing")
    if X86 not in sums:
        return {}
    return {
        name: value(sums[mark]) if mark in sums else absent(f"{INTERRUPTS} has no line {mark.decode()}")
        for name, mark in MACHINE_CHECK_LINES.items()
    }


def sum_interrupts(lines: Iterable[bytes]) -> dict[bytes, int]:
    """Return the sum over all CPUs of each line of interest, by its mark.

    /proc/interrupts has a column for each CPU, megabytes on a large node, so `lines` is read one line at a time.
    """
    marks = {X86, *ARM, *MACHINE_CHECK_LINES.values()}
    sums = {}
    for line in lines:
        if line.lstrip()[:4] in marks:
            mark, *words = line.split()
            sums[mark] = sum(int(word) for word in words if word.isdigit())
    return sums
