"""Reads InfiniBand adapters from sysfs, with each port's state, LIDs, P_Keys and counters.

Readings directly below an adapter are of its first port; other ports are in `ports`.
"""

from __future__ import annotations

from functools import partial

from assay.model.reading import ReadingTree, absent, value
from assay.node.probe.devices.pci import parse_pci_slot, read_numa_node
from assay.node.probe.node_access import LazyTree, NodeRoot, leaf_for_error, require_text

INFINIBAND_CLASS = "/sys/class/infiniband"

PORT_COUNTERS = (  # InfiniBand Architecture Specification, PortCounters, as ib_core names them
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
HW_COUNTERS = (  # mlx5's own: retransmissions, and a host that is too slow
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
)
MAX_PKEYS = 128


def read_hcas(root: NodeRoot) -> LazyTree:
    """Return the `hca` branch, adapters by kernel name."""
    try:
        names = root.list_names(INFINIBAND_CLASS)
    except OSError as error:
        return leaf_for_error(INFINIBAND_CLASS, error)
    return {name: _adapter(root, f"{INFINIBAND_CLASS}/{name}") for name in names} or absent(
        f"{INFINIBAND_CLASS} is empty"
    )


def _adapter(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "guid": root.defer_read(f"{folder}/node_guid", parse_guid),
        "firmware": root.defer_read(f"{folder}/fw_ver", require_text),
        "board_id": root.defer_read(f"{folder}/board_id"),
        "type": root.defer_read(f"{folder}/hca_type"),
        "pci": root.defer_read(f"{folder}/device/uevent", parse_pci_slot),
        "numa_node": partial(read_numa_node, root, f"{folder}/device"),
        **read_hca_port(root, f"{folder}/ports/1"),
        "ports": partial(_other_ports, root, f"{folder}/ports"),
    }


def _other_ports(root: NodeRoot, folder: str) -> ReadingTree | LazyTree:
    """Return the ports beyond the first; ConnectX-7 cards in GPU nodes have none."""
    try:
        names = [name for name in root.list_names(folder) if name != "1"]
    except OSError as error:
        return leaf_for_error(folder, error)
    return {name: read_hca_port(root, f"{folder}/{name}") for name in names} or absent("the adapter has one port")


def read_hca_port(root: NodeRoot, port: str) -> LazyTree:
    """Return a port's readings. Counters saturate, link_downed at 255 on many firmwares."""
    return {
        "link_layer": root.defer_read(f"{port}/link_layer"),
        "state": root.defer_read(f"{port}/state", parse_hca_port_state),
        "phys_state": root.defer_read(f"{port}/phys_state", parse_hca_port_state),
        "rate_gbps": root.defer_read(f"{port}/rate", parse_rate_gbps),
        "port_guid": root.defer_read(f"{port}/gids/0", parse_port_guid),
        "lid": root.defer_read(f"{port}/lid", parse_number),
        "sm_lid": root.defer_read(f"{port}/sm_lid", parse_number),
        "pkeys": partial(_read_pkeys, root, f"{port}/pkeys"),
        "counters": {name: root.defer_read(f"{port}/counters/{name}", int) for name in PORT_COUNTERS},
        "hw_counters": {name: root.defer_read(f"{port}/hw_counters/{name}", int) for name in HW_COUNTERS},
    }


def _read_pkeys(root: NodeRoot, folder: str) -> ReadingTree:
    """Return the P_Keys up to the first empty entry, as `0xffff`. A subnet manager fills the table from its start."""
    found: list[str] = []
    for index in range(MAX_PKEYS):
        try:
            key = int(root.read_text(f"{folder}/{index}"), 16)
        except OSError as error:
            return value(found) if found else leaf_for_error(f"{folder}/{index}", error)
        if not key:
            break
        found.append(f"{key:#06x}")
    return value(found)


def parse_guid(text: str) -> str:
    """Turn `b83f:d203:00a1:0000` into `0xb83fd20300a10000`. Raises ValueError unless there are 16 hex digits."""
    digits = text.replace(":", "").lower()
    if len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(text)
    return f"0x{digits}"


def parse_port_guid(gid: str) -> str:
    """Return the port's GUID, the lower half of its GID. Raises ValueError unless the GID has eight groups."""
    groups = gid.split(":")
    if len(groups) != 8:
        raise ValueError(gid)
    return parse_guid("".join(groups[4:]))


def parse_number(text: str) -> int:
    """Turn `0x1f` into 31. Raises ValueError."""
    return int(text, 0)


def parse_hca_port_state(text: str) -> str:
    """Turn `4: ACTIVE` into `ACTIVE`. Raises ValueError where the number or the name is missing."""
    number, name = text.split(": ", 1)
    int(number)
    return name


def parse_rate_gbps(text: str) -> int | float:
    """Turn `400 Gb/sec (4X NDR)` into 400. Raises ValueError for another unit."""
    number, unit = text.split()[:2]
    if unit != "Gb/sec":
        raise ValueError(text)
    gbps = float(number)
    return int(gbps) if gbps.is_integer() else gbps
