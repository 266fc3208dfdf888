"""Memory modules, from the firmware's table: which slot holds what, how fast it may run, and how fast it runs."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.reading import absent, failed, value
from assay.probe.dmi import LARGEST, TABLE, Structure, structures
from assay.probe.files import Root, Tree, unread

MEMORY_DEVICE = 17
UNKNOWN = 0xFFFF
EXTENDED = 0x7FFF
IN_KIB = 0x8000


def read_dimms(root: Root) -> Tree:
    """Return the branch of the memory: `dimms` that are plugged in by slot, and `empty_slots`. Needs root."""
    try:
        table = root.start(TABLE, LARGEST)
    except OSError as error:
        return unread(TABLE, error)
    try:
        devices = by_slot(one for one in structures(table) if one.type == MEMORY_DEVICE)
    except ValueError as error:
        return failed(f"{TABLE}: {error}")
    if not devices:
        return absent(f"{TABLE} lists no memory device")
    plugged = {slot: _device(device) for slot, device in devices.items() if device.number(0x0C, 2) != 0}
    return {"dimms": plugged, "empty_slots": value([slot for slot in devices if slot not in plugged])}


def by_slot(devices: Iterable[Structure]) -> dict[str, Structure]:
    """Return the devices by the name of their slot, with the bank's where a name comes twice."""
    found: dict[str, Structure] = {}
    for number, device in enumerate(devices):
        slot = (device.text(0x10) or f"device {number}").replace("/", "-")
        again = f"{slot} {device.text(0x11)}".strip() if slot in found else slot
        found[again if again not in found else f"{slot} device {number}"] = device
    return found


def _device(device: Structure) -> Tree:
    return {
        "size_bytes": _size(device, device.number(0x0C, 2)),
        "speed_mts": _speed(device, 0x15, 0x54),
        "configured_mts": _speed(device, 0x20, 0x58),
        "vendor": _text(device, 0x17, "vendor"),
        "serial": _text(device, 0x18, "serial number"),
        "part": _text(device, 0x1A, "part number"),
    }


def _size(device: Structure, size: int | None) -> Tree:
    """Return the size: a word in MiB, or in KiB where its top bit says so, or a longer field for the large ones."""
    if size == EXTENDED:
        mib = device.number(0x1C, 4)
        return value((mib & 0x7FFFFFFF) << 20) if mib is not None else failed("the extended size is missing")
    if size is None or size == UNKNOWN:
        return absent("the firmware does not know its size")
    return value((size & EXTENDED) << (10 if size & IN_KIB else 20))


def _speed(device: Structure, short: int, long: int) -> Tree:
    """Return a speed in millions of transfers a second."""
    speed = device.number(short, 2)
    speed = device.number(long, 4) if speed == UNKNOWN else speed
    return value(speed) if speed else absent("the firmware does not know its speed")


def _text(device: Structure, offset: int, what: str) -> Tree:
    text = device.text(offset)
    return value(text) if text else absent(f"the firmware gives no {what}")
