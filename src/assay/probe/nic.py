"""Network interfaces that are hardware: Ethernet with a device behind it, not bridges, tunnels or loopback."""

from __future__ import annotations

from functools import partial

from assay.model.reading import absent
from assay.probe.files import Root, Tree, unread
from assay.probe.lazy import Lazy
from assay.probe.pci import numa_node
from assay.probe.uevent import pci_slot

CLASS = "/sys/class/net"
ETHERNET = "1"  # ARPHRD_ETHER; 32 is IP over InfiniBand
COUNTERS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped", "rx_missed_errors")


def read_nics(root: Root) -> Lazy:
    """Return the `nic` branch, interfaces by name."""
    try:
        names = root.names(CLASS)
    except OSError as error:
        return unread(CLASS, error)
    found = {name: _interface(root, f"{CLASS}/{name}") for name in names if _is_hardware(root, f"{CLASS}/{name}")}
    return found or absent(f"no Ethernet interface with a device behind it in {CLASS}")


def _is_hardware(root: Root, folder: str) -> bool:
    try:
        return root.exists(f"{folder}/device") and root.text(f"{folder}/type") == ETHERNET
    except OSError:
        return False


def _interface(root: Root, folder: str) -> Lazy:
    return {
        "carrier": root.later(f"{folder}/carrier", carrier),
        "speed_mbps": partial(_speed, root, f"{folder}/speed"),
        "duplex": root.later(f"{folder}/duplex"),
        "mtu_bytes": root.later(f"{folder}/mtu", int),
        "mac": root.later(f"{folder}/address"),
        "carrier_changes": root.later(f"{folder}/carrier_changes", int),
        "pci": root.later(f"{folder}/device/uevent", pci_slot),
        "numa_node": partial(numa_node, root, f"{folder}/device"),
        "counters": {name: root.later(f"{folder}/statistics/{name}", int) for name in COUNTERS},
    }


def carrier(text: str) -> bool:
    """Turn `1` or `0` into a truth. Raises ValueError for anything else."""
    if text not in ("0", "1"):
        raise ValueError(text)
    return text == "1"


def _speed(root: Root, path: str) -> Tree:
    """Return the link's speed; the kernel says -1 where the driver does not know it (no link, virtual device)."""
    leaf = root.read(path, int)
    return absent(f"{path}: the driver knows no speed") if leaf.get("value", 0) < 0 else leaf
