"""Network interfaces that are hardware: Ethernet with a device behind it, not bridges, tunnels or loopback.

Bonds: interfaces that are several Ethernet links at once, and how many of those are up.
"""

from __future__ import annotations

from functools import partial

from assay.model.reading import absent, value
from assay.probe.devices.pci import parse_pci_slot, read_numa_node
from assay.probe.node_access import LazyTree, NodeRoot, Tree, leaf_for_error

BOND_NET_CLASS = "/sys/class/net"
BONDING_MASTERS = f"{BOND_NET_CLASS}/bonding_masters"


def read_bonds(root: NodeRoot) -> LazyTree:
    """Return the `bond` branch by name; an empty one where the kernel has none."""
    masters = root.read_leaf(BONDING_MASTERS, str.split)
    if "absent" in masters:
        return {}
    return (
        {name: _bond(root, f"{BOND_NET_CLASS}/{name}/bonding") for name in masters["value"]}
        if "value" in masters
        else masters
    )


def _bond(root: NodeRoot, folder: str) -> LazyTree:
    return {
        "mode": root.defer_read(f"{folder}/mode", parse_bond_mode),
        "members": root.defer_read(f"{folder}/slaves", str.split),
        "up": partial(_up, root, f"{folder}/slaves"),
    }


def _up(root: NodeRoot, path: str) -> Tree:
    """Return the members that carry data."""
    try:
        members = root.read_text(path).split()
        return value(
            [name for name in members if root.read_text(f"{BOND_NET_CLASS}/{name}/bonding_slave/mii_status") == "up"]
        )
    except OSError as error:
        return leaf_for_error(path, error)


def parse_bond_mode(text: str) -> str:
    """Turn `802.3ad 4` into `802.3ad`. Raises ValueError without a number."""
    name, number = text.split()
    int(number)
    return name


NET_CLASS = "/sys/class/net"
ETHERNET = "1"  # ARPHRD_ETHER; 32 is IP over InfiniBand
NIC_COUNTERS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped", "rx_missed_errors")


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
    """Turn `1` or `0` into a truth. Raises ValueError for anything else."""
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _speed(root: NodeRoot, path: str) -> Tree:
    """Return the link's speed; the kernel says -1 where the driver does not know it (no link, virtual device)."""
    leaf = root.read_leaf(path, int)
    return absent(f"{path}: the driver knows no speed") if leaf.get("value", 0) < 0 else leaf
