"""Reads Ethernet interfaces that are hardware (no bridges, tunnels or loopback), and bonds with their members."""

from __future__ import annotations

from functools import partial

from assay.model.reading import ReadingTree, absent, value
from assay.node.probe.devices.pci import parse_pci_slot, read_numa_node
from assay.node.probe.node_access import LazyTree, NodeRoot, leaf_for_error

NET_CLASS = "/sys/class/net"
ETHERNET = "1"  # ARPHRD_ETHER; 32 is IP over InfiniBand
NIC_COUNTERS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped", "rx_missed_errors")

BONDING_MASTERS = f"{NET_CLASS}/bonding_masters"


def read_nics(root: NodeRoot) -> LazyTree:
    """Return the `nic` branch, interfaces by name."""
    try:
        names = root.list_names(NET_CLASS)
    except OSError as error:
        return leaf_for_error(NET_CLASS, error)
    found = {
        name: _interface(root, f"{NET_CLASS}/{name}") for name in names if _is_hardware(root, f"{NET_CLASS}/{name}")
    }
    return found or absent(f"no Ethernet interface with a device behind it in {NET_CLASS}")


def _is_hardware(root: NodeRoot, folder: str) -> bool:
    try:
        return root.exists(f"{folder}/device") and root.read_text(f"{folder}/type") == ETHERNET
    except OSError:
        return False


def _interface(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "carrier": root.defer_read(f"{folder}/carrier", parse_carrier),
        "speed_mbps": partial(_speed, root, f"{folder}/speed"),
        "duplex": root.defer_read(f"{folder}/duplex"),
        "mtu_bytes": root.defer_read(f"{folder}/mtu", int),
        "mac": root.defer_read(f"{folder}/address"),
        "carrier_changes": root.defer_read(f"{folder}/carrier_changes", int),
        "pci": root.defer_read(f"{folder}/device/uevent", parse_pci_slot),
        "numa_node": partial(read_numa_node, root, f"{folder}/device"),
        "counters": {name: root.defer_read(f"{folder}/statistics/{name}", int) for name in NIC_COUNTERS},
    }


def parse_carrier(text: str) -> bool:
    """Turn `1` or `0` into a bool. Raises ValueError for anything else."""
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _speed(root: NodeRoot, path: str) -> ReadingTree:
    """Return the link's speed in Mb/s; absent where the driver does not know it (no link), which sysfs writes as -1."""
    leaf = root.read_leaf(path, int)
    return absent(f"{path}: the driver knows no speed") if leaf.get("value", 0) < 0 else leaf


def read_bonds(root: NodeRoot) -> LazyTree:
    """Return the `bond` branch by name; it is empty where the kernel has no bonds."""
    masters = root.read_leaf(BONDING_MASTERS, str.split)
    if "value" in masters:
        return {name: _bond(root, f"{NET_CLASS}/{name}/bonding") for name in masters["value"]}
    return {} if "absent" in masters else masters


def _bond(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "mode": root.defer_read(f"{folder}/mode", parse_bond_mode),
        "members": root.defer_read(f"{folder}/slaves", str.split),
        "up": partial(_members_up, root, f"{folder}/slaves"),
    }


def _members_up(root: NodeRoot, path: str) -> ReadingTree:
    """Return the names of the members whose link is up."""
    try:
        members = root.read_text(path).split()
        return value(
            [name for name in members if root.read_text(f"{NET_CLASS}/{name}/bonding_slave/mii_status") == "up"]
        )
    except OSError as error:
        return leaf_for_error(path, error)


def parse_bond_mode(text: str) -> str:
    """Turn `802.3ad 4` into `802.3ad`. Raises ValueError where the number is missing."""
    name, number = text.split()
    int(number)
    return name
