"""NVMe drives, from sysfs."""

from __future__ import annotations

import re

from assay.model.reading import absent, value
from assay.probe.files import Root, Tree, unread

CLASS = "/sys/class/nvme"
SECTOR = 512  # sysfs counts sizes in these, whatever the drive's own block size
NAMESPACE = re.compile(r"nvme\d+(c\d+)?n\d+")


def read_drives(root: Root) -> Tree:
    """Return the `nvme` branch, controllers by name."""
    try:
        names = root.names(CLASS)
    except OSError as error:
        return unread(CLASS, error)
    return {name: _drive(root, f"{CLASS}/{name}") for name in names} or absent(f"{CLASS} is empty")


def _drive(root: Root, folder: str) -> Tree:
    return {
        "model": root.read(f"{folder}/model"),
        "serial": root.read(f"{folder}/serial"),
        "firmware": root.read(f"{folder}/firmware_rev"),
        "size_bytes": _size(root, folder),
    }


def namespaces(root: Root, drive: str) -> list[str]:
    """Return the names of a drive's namespaces, `nvme0n1`. Raises OSError for a drive that is not there."""
    return [name for name in root.names(f"{CLASS}/{drive}") if NAMESPACE.fullmatch(name)]


def _size(root: Root, folder: str) -> Tree:
    """Return the size of all namespaces together, the first one's reason where one of them cannot be read."""
    try:
        found = namespaces(root, folder.removeprefix(f"{CLASS}/"))
    except OSError as error:
        return unread(folder, error)
    sizes = [root.read(f"{folder}/{name}/size", int) for name in found]
    unreadable = [size for size in sizes if "value" not in size]
    if not sizes or unreadable:
        return unreadable[0] if unreadable else absent(f"{folder} has no namespace")
    return value(sum(size["value"] for size in sizes) * SECTOR)
