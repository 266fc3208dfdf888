"""InfiniBand adapters, from sysfs. What stands at an adapter itself is its first port's; others are in `ports`."""

from __future__ import annotations

from functools import partial

from assay.model.reading import absent
from assay.probe.files import Root, Tree, not_empty, unread
from assay.probe.hca_port import guid, read_port
from assay.probe.lazy import Lazy
from assay.probe.pci import numa_node
from assay.probe.uevent import pci_slot

CLASS = "/sys/class/infiniband"


def read_hcas(root: Root) -> Lazy:
    """Return the `hca` branch, adapters by kernel name."""
    try:
        names = root.names(CLASS)
    except OSError as error:
        return unread(CLASS, error)
    return {name: _adapter(root, f"{CLASS}/{name}") for name in names} or absent(f"{CLASS} is empty")


def _adapter(root: Root, folder: str) -> Lazy:
    return {
        "guid": root.later(f"{folder}/node_guid", guid),
        "firmware": root.later(f"{folder}/fw_ver", not_empty),
        "board_id": root.later(f"{folder}/board_id"),
        "type": root.later(f"{folder}/hca_type"),
        "pci": root.later(f"{folder}/device/uevent", pci_slot),
        "numa_node": partial(numa_node, root, f"{folder}/device"),
        **read_port(root, f"{folder}/ports/1"),
        "ports": partial(_others, root, f"{folder}/ports"),
    }


def _others(root: Root, folder: str) -> Tree | Lazy:
    """Return the ports beyond the first; ConnectX-7 cards in GPU nodes have none."""
    try:
        names = [name for name in root.names(folder) if name != "1"]
    except OSError as error:
        return unread(folder, error)
    return {name: read_port(root, f"{folder}/{name}") for name in names} or absent("the adapter has one port")
