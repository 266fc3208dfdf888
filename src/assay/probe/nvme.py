"""NVMe drives, from sysfs, and what they say of their own health."""

from __future__ import annotations

import re
from functools import partial

from assay.model.reading import absent, value
from assay.probe.files import Root, Tree, unread
from assay.probe.lazy import Lazy, Timed
from assay.probe.nvme_smart import SMART_S, read_smart

CLASS = "/sys/class/nvme"
SECTOR = 512  # sysfs counts sizes in these, whatever the drive's own block size
NAMESPACE = re.compile(r"nvme\d+(c\d+)?n\d+")


def read_drives(root: Root) -> Lazy:
    """Return the `nvme` branch, controllers by name."""
    try:
        names = root.names(CLASS)
    except OSError as error:
        return unread(CLASS, error)
    return {name: _drive(root, name) for name in names} or absent(f"{CLASS} is empty")


def _drive(root: Root, name: str) -> Lazy:
    folder = f"{CLASS}/{name}"
    return {
        "model": root.later(f"{folder}/model"),
        "serial": root.later(f"{folder}/serial"),
        "firmware": root.later(f"{folder}/firmware_rev"),
        "size_bytes": partial(_size, root, name),
        "state": root.later(f"{folder}/state"),
        "transport": root.later(f"{folder}/transport"),
        "pci": root.later(f"{folder}/address", str.lower),
        "smart": Timed(SMART_S, partial(read_smart, name)),
    }


def namespaces(root: Root, drive: str) -> list[str]:
    """Return the names of a drive's namespaces, `nvme0n1`. Raises OSError for a drive that is not there."""
    return [name for name in root.names(f"{CLASS}/{drive}") if NAMESPACE.fullmatch(name)]


def _size(root: Root, drive: str) -> Tree:
    """Return the size of all namespaces together, the first one's reason where one of them cannot be read."""
    folder = f"{CLASS}/{drive}"
    try:
        found = namespaces(root, drive)
    except OSError as error:
        return unread(folder, error)
    sizes = [root.read(f"{folder}/{name}/size", int) for name in found]
    unreadable = [size for size in sizes if "value" not in size]
    if not sizes or unreadable:
        return unreadable[0] if unreadable else absent(f"{folder} has no namespace")
    return value(sum(size["value"] for size in sizes) * SECTOR)
