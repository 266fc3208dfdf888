"""Bonds: interfaces that are several Ethernet links at once, and how many of those are up."""

from __future__ import annotations

from functools import partial

from assay.model.reading import value
from assay.probe.files import Root, Tree, unread
from assay.probe.lazy import Lazy

CLASS = "/sys/class/net"
MASTERS = f"{CLASS}/bonding_masters"


def read_bonds(root: Root) -> Lazy:
    """Return the `bond` branch by name; an empty one where the kernel has none."""
    masters = root.read(MASTERS, str.split)
    if "absent" in masters:
        return {}
    return (
        {name: _bond(root, f"{CLASS}/{name}/bonding") for name in masters["value"]} if "value" in masters else masters
    )


def _bond(root: Root, folder: str) -> Lazy:
    return {
        "mode": root.later(f"{folder}/mode", mode),
        "members": root.later(f"{folder}/slaves", str.split),
        "up": partial(_up, root, f"{folder}/slaves"),
    }


def _up(root: Root, path: str) -> Tree:
    """Return the members that carry data."""
    try:
        members = root.text(path).split()
        return value([name for name in members if root.text(f"{CLASS}/{name}/bonding_slave/mii_status") == "up"])
    except OSError as error:
        return unread(path, error)


def mode(text: str) -> str:
    """Turn `802.3ad 4` into `802.3ad`. Raises ValueError without a number."""
    name, number = text.split()
    int(number)
    return name
