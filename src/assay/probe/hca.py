"""InfiniBand adapters, from sysfs: first port of each, as ConnectX-7 cards in GPU nodes have one."""

from __future__ import annotations

from assay.model.reading import absent
from assay.probe.files import Root, Tree, unread

CLASS = "/sys/class/infiniband"
COUNTERS = ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors")


def read_hcas(root: Root) -> Tree:
    """Return the `hca` branch, adapters by kernel name; counters saturate (link_downed at 255 on many firmwares)."""
    try:
        names = root.names(CLASS)
    except OSError as error:
        return unread(CLASS, error)
    return {name: _adapter(root, f"{CLASS}/{name}") for name in names} or absent(f"{CLASS} is empty")


def _adapter(root: Root, folder: str) -> Tree:
    port = f"{folder}/ports/1"
    return {
        "guid": root.read(f"{folder}/node_guid", guid),
        "firmware": root.read(f"{folder}/fw_ver"),
        "board_id": root.read(f"{folder}/board_id"),
        "link_layer": root.read(f"{port}/link_layer"),
        "state": root.read(f"{port}/state", port_state),
        "phys_state": root.read(f"{port}/phys_state", port_state),
        "rate_gbps": root.read(f"{port}/rate", rate_gbps),
        "counters": {name: root.read(f"{port}/counters/{name}", int) for name in COUNTERS},
    }


def guid(text: str) -> str:
    """Turn `b83f:d203:00a1:0000` into `0xb83fd20300a10000`. Raises ValueError unless it is 16 hex digits."""
    digits = text.replace(":", "").lower()
    if len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(text)
    return f"0x{digits}"


def port_state(text: str) -> str:
    """Turn `4: ACTIVE` into `ACTIVE`. Raises ValueError without a number and a name."""
    number, name = text.split(": ", 1)
    int(number)
    return name


def rate_gbps(text: str) -> int | float:
    """Turn `400 Gb/sec (4X NDR)` into 400. Raises ValueError for another unit."""
    number, unit = text.split()[:2]
    if unit != "Gb/sec":
        raise ValueError(text)
    gbps = float(number)
    return int(gbps) if gbps.is_integer() else gbps
