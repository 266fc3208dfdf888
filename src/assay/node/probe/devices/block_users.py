"""Finds who uses a block device: file systems, swap, and arrays or volumes on it, also through partitions."""

from __future__ import annotations

import os
import re

from assay.node.probe.node_access import NodeRoot

BLOCK_CLASS = "/sys/class/block"
OCTAL = re.compile(r"\\([0-7]{3})")
User = tuple[str, str]
"""A kind (mount, swap or holder) and a name: the mount point, the device of the swap, the array or volume."""


def list_block_users(root: NodeRoot, devices: list[str]) -> list[User]:
    """Return the users of devices (`nvme0n1`), those on top first. Raises OSError if the mounts cannot be read."""
    family = _find_family(root, devices)
    holders = [("holder", name) for name, is_holder in reversed(family.items()) if is_holder]
    return [*_list_mounts(root, family), *_list_swaps(root, family), *holders]


def _find_family(root: NodeRoot, devices: list[str]) -> dict[str, bool]:
    """Return the devices, their partitions and all that holds them, each with whether it is a holder."""
    family, waiting = dict.fromkeys(devices, False), list(devices)
    while waiting:
        name = waiting.pop()
        partitions = [one for one in _list_names(root, f"{BLOCK_CLASS}/{name}") if one.startswith(name)]
        for found, is_holder in [
            *((one, False) for one in partitions),
            *((one, True) for one in _list_names(root, f"{BLOCK_CLASS}/{name}/holders")),
        ]:
            if found not in family:
                family[found] = is_holder
                waiting.append(found)
    return family


def _list_names(root: NodeRoot, folder: str) -> list[str]:
    return root.list_names(folder) if root.exists(folder) else []


def _list_mounts(root: NodeRoot, family: dict[str, bool]) -> list[User]:
    """Return the mounts of a family, the last one first. The kernel writes a space in a mount point in octal."""
    rows = [line.split() for line in reversed(root.read_text("/proc/mounts").splitlines())]
    return [("mount", OCTAL.sub(_decode, row[1])) for row in rows if _names_device(root, row[0], family)]


def _decode(found: re.Match[str]) -> str:
    return chr(int(found[1], 8))


def _list_swaps(root: NodeRoot, family: dict[str, bool]) -> list[User]:
    lines = root.read_text("/proc/swaps").splitlines()[1:] if root.exists("/proc/swaps") else []
    return [("swap", line.split()[0]) for line in lines if _names_device(root, line.split()[0], family)]


def _names_device(root: NodeRoot, source: str, family: dict[str, bool]) -> bool:
    """Whether a source such as `/dev/mapper/data` is a device of the family."""
    if not source.startswith("/dev/"):
        return False
    return os.path.basename(os.path.realpath(root.local_path(source))) in family  # noqa: PTH119  # as in node_access
