"""One port of an InfiniBand adapter: its state, its place in the subnet, and what it counts."""

from __future__ import annotations

from functools import partial

from assay.model.reading import value
from assay.probe.files import Root, Tree, unread
from assay.probe.lazy import Lazy

COUNTERS = (  # InfiniBand Architecture Specification, PortCounters, as ib_core names them
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_constraint_errors",
    "port_xmit_constraint_errors",
    "port_xmit_discards",
    "port_xmit_wait",
    "port_rcv_data",
    "port_xmit_data",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
)
HW_COUNTERS = (  # mlx5's own, which know of retransmissions and of a host that is too slow
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
)
MOST_KEYS = 128


def read_port(root: Root, port: str) -> Lazy:
    """Return a port's readings; counters saturate (link_downed at 255 on many firmwares)."""
    return {
        "link_layer": root.later(f"{port}/link_layer"),
        "state": root.later(f"{port}/state", port_state),
        "phys_state": root.later(f"{port}/phys_state", port_state),
        "rate_gbps": root.later(f"{port}/rate", rate_gbps),
        "port_guid": root.later(f"{port}/gids/0", port_guid),
        "lid": root.later(f"{port}/lid", number),
        "sm_lid": root.later(f"{port}/sm_lid", number),
        "pkeys": partial(_keys, root, f"{port}/pkeys"),
        "counters": {name: root.later(f"{port}/counters/{name}", int) for name in COUNTERS},
        "hw_counters": {name: root.later(f"{port}/hw_counters/{name}", int) for name in HW_COUNTERS},
    }


def _keys(root: Root, folder: str) -> Tree:
    """Return the P_Keys up to the first empty entry, as `0xffff`: a subnet manager fills the table from its start."""
    found: list[str] = []
    for index in range(MOST_KEYS):
        try:
            key = int(root.text(f"{folder}/{index}"), 16)
        except OSError as error:
            return value(found) if found else unread(f"{folder}/{index}", error)
        if not key:
            break
        found.append(f"{key:#06x}")
    return value(found)


def guid(text: str) -> str:
    """Turn `b83f:d203:00a1:0000` into `0xb83fd20300a10000`. Raises ValueError unless it is 16 hex digits."""
    digits = text.replace(":", "").lower()
    if len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(text)
    return f"0x{digits}"


def port_guid(gid: str) -> str:
    """Return the lower half of a GID, which is the port's GUID. Raises ValueError unless the GID has eight groups."""
    groups = gid.split(":")
    if len(groups) != 8:
        raise ValueError(gid)
    return guid("".join(groups[4:]))


def number(text: str) -> int:
    """Turn `0x1f` into 31. Raises ValueError."""
    return int(text, 0)


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
