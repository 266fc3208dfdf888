"""Network interfaces that are hardware: Ethernet with a device behind it, not bridges, tunnels or loopback."""

from __future__ import annotations

from assay.model.reading import absent
from assay.probe.files import Root, Tree, unread

CLASS = "/sys/class/net"
ETHERNET = "1"  # ARPHRD_ETHER; 32 is IP over InfiniBand


def read_nics(root: Root) -> Tree:
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


def _interface(root: Root, folder: str) -> Tree:
    return {
        "carrier": root.read(f"{folder}/carrier", carrier),
        "speed_mbps": _speed(root, f"{folder}/speed"),
        "mac": root.read(f"{folder}/address"),
        "carrier_changes": root.read(f"{folder}/carrier_changes", int),
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
