"""Reads the PCI devices that matter to a GPU node: their links, and the bridges above them with their ACS controls.

A bridge's configuration space is read a few bytes at a time: each word of its 4 KiB is an access to the device. Only
root can read more than the first 64 bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, failed, value
from assay.node.probe.node_access import LazyTree, NodeRoot, leaf_for_error

PCI_EXPRESS = 0x10  # capability; PCI Express Base Specification 6.2, 7.5.3
ACS = 0x0D  # extended capability; 7.7.11
FIRST_EXTENDED = 0x100
MAX_CAPABILITIES = 64  # a broken list may run in a circle
PORT_KINDS = {4: "root port", 5: "switch upstream", 6: "switch downstream", 7: "to PCI", 8: "from PCI"}
ACS_CONTROLS = (
    "source_validation",
    "translation_blocking",
    "request_redirect",
    "completion_redirect",
    "upstream_forwarding",
    "egress_control",
    "direct_translated",
)

PCI_SLOT_NAME = re.compile(r"^PCI_SLOT_NAME=([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$", re.MULTILINE)

PCI_DEVICES = "/sys/bus/pci/devices"
PCI_KINDS = {  # PCI Code and ID Assignment Specification: base class and subclass
    "0x0108": "nvme",
    "0x0200": "ethernet",
    "0x0207": "infiniband",
    "0x0300": "gpu",
    "0x0302": "gpu",
    "0x0680": "nvswitch",
    "0x1200": "accelerator",
}
BRIDGE_CLASS = "0x0604"
GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}  # GT/s
ReadConfig = Callable[[int, int], int]
"""(offset, size in bytes) → number. Raises ConfigTooShort."""
SEVERITIES = ("correctable", "nonfatal", "fatal")


class BusRange(NamedTuple):
    """The buses behind a bridge: `first` is its secondary one, `last` its subordinate one."""

    domain: str
    first: int
    last: int

    def contains(self, address: str) -> bool:
        """Return whether a device sits behind the bridge."""
        domain, bus, _ = address.split(":")
        return domain == self.domain and self.first <= int(bus, 16) <= self.last


def read_pci(root: NodeRoot) -> LazyTree:
    """Return the `pci` branch by address: GPUs, adapters, drives and switches, and the bridges that lead to them."""
    try:
        classes = {name: _class(root, name) for name in root.list_names(PCI_DEVICES)}
    except OSError as error:
        return leaf_for_error(PCI_DEVICES, error)
    devices = {name: PCI_KINDS[code] for name, code in classes.items() if code in PCI_KINDS}
    bridges = _bridges_above(root, [name for name, code in classes.items() if code == BRIDGE_CLASS], list(devices))
    tree: dict[str, LazyTree] = {name.lower(): _device(root, name, kind) for name, kind in devices.items()}
    tree |= {name.lower(): partial(read_bridge, root, f"{PCI_DEVICES}/{name}") for name in bridges}  # type: ignore[misc]
    return tree or absent(f"{PCI_DEVICES} has no GPU, adapter, drive or switch")


def _class(root: NodeRoot, name: str) -> str:
    """Return a device's class and subclass, `0x0302`; "" where the device has vanished."""
    try:
        return root.read_start(f"{PCI_DEVICES}/{name}/class", 6).decode(errors="replace")
    except OSError:
        return ""


def _bridges_above(root: NodeRoot, bridges: Iterable[str], devices: list[str]) -> Iterator[str]:
    """Yield the bridges that have one of `devices` behind them."""
    for name in bridges:
        try:
            header = root.read_start(f"{PCI_DEVICES}/{name}/config", 64)
        except OSError:
            continue
        buses = BusRange(name.split(":")[0], *header[0x19:0x1B]) if len(header) == 64 else None
        if buses and any(buses.contains(device) for device in devices):
            yield name


def _device(root: NodeRoot, name: str, kind: str) -> LazyTree:
    folder = f"{PCI_DEVICES}/{name}"

    def read_iommu() -> ReadingTree:
        """Return how the IOMMU treats the device's addresses: `identity`, `DMA`, `DMA-FQ`, or `none` without one."""
        leaf = root.read_leaf(f"{folder}/iommu_group/type")
        return value("none") if "absent" in leaf and root.exists(folder) else leaf

    return {
        "kind": value(kind),
        "link": partial(read_link, root, folder),
        "numa_node": partial(read_numa_node, root, folder),
        "iommu": read_iommu,
    }


def read_numa_node(root: NodeRoot, folder: str) -> ReadingTree:
    """Return the NUMA node of a device; absent where the kernel does not know it, which it writes as -1."""
    leaf = root.read_leaf(f"{folder}/numa_node", int)
    return absent(f"{folder}: the firmware names no NUMA node") if leaf.get("value", 0) < 0 else leaf


def read_link(root: NodeRoot, folder: str) -> ReadingTree:
    """Return a link's width and generation as trained, and the device's highest; links inside a chip have none."""
    return {
        "width": root.read_leaf(f"{folder}/current_link_width", parse_link_width),
        "generation": root.read_leaf(f"{folder}/current_link_speed", parse_link_generation),
        "max_width": root.read_leaf(f"{folder}/max_link_width", parse_link_width),
        "max_generation": root.read_leaf(f"{folder}/max_link_speed", parse_link_generation),
    }


def parse_link_width(text: str) -> int:
    """Turn `16` into 16 lanes. Raises ValueError for 0 and 255, which mean no link."""
    lanes = int(text)
    if not 0 < lanes < 255:
        raise ValueError(text)
    return lanes


def parse_link_generation(text: str) -> int:
    """Turn `32.0 GT/s PCIe` into 5. Raises ValueError for an unknown speed."""
    speed, unit = text.split()[:2]
    if unit != "GT/s" or f"{float(speed):.1f}" not in GENERATIONS:
        raise ValueError(text)
    return GENERATIONS[f"{float(speed):.1f}"]


def parse_pci_slot(text: str) -> str:
    """Return the PCI address in a device's `uevent` file, as Linux writes it. Raises ValueError for another bus."""
    address = PCI_SLOT_NAME.search(text)
    if address is None:
        raise ValueError("no PCI device")
    return address[1].lower()


class ConfigTooShort(Exception):
    """The configuration space ends before the word that was read."""


def read_bridge(root: NodeRoot, folder: str) -> ReadingTree:
    """Return a bridge's branch: its `kind`, the `buses` behind it (first, last) and the `acs` controls that are on."""
    path = f"{folder}/config"
    try:
        descriptor = os.open(root.local_path(path), os.O_RDONLY)
    except OSError as error:
        return leaf_for_error(path, error)
    try:
        return _bridge(path, lambda offset, size: _read_number(descriptor, offset, size))
    except OSError as error:
        return leaf_for_error(path, error)
    finally:
        os.close(descriptor)


def _bridge(path: str, read: ReadConfig) -> ReadingTree:
    reason = f"{path}: too short for this answer; only root can read all of it"

    def find_kind() -> str:
        offset = _find_express(read)
        return PORT_KINDS.get(read(offset + 2, 2) >> 4 & 0xF, "bridge") if offset else "bridge"

    def list_acs_controls() -> list[str]:
        offset = _find_extended(read, ACS) if _find_express(read) else 0
        control = read(offset + 6, 2) if offset else 0
        return [name for bit, name in enumerate(ACS_CONTROLS) if control >> bit & 1]

    questions: dict[str, Callable[[], object]] = {
        "kind": find_kind,
        "buses": lambda: [read(0x19, 1), read(0x1A, 1)],
        "acs": list_acs_controls,
    }
    branch: ReadingTree = {}
    for name, question in questions.items():
        try:
            branch[name] = value(question())
        except ConfigTooShort:
            branch[name] = failed(reason)
    return branch


def _find_express(read: ReadConfig) -> int:
    """Return the offset of the PCI Express capability, 0 where the device has none."""
    offset = read(0x34, 1) if read(0x06, 2) & 0x10 else 0
    for _ in range(MAX_CAPABILITIES):
        if not offset or read(offset, 1) == PCI_EXPRESS:
            return offset
        offset = read(offset + 1, 1) & 0xFC
    return 0


def _find_extended(read: ReadConfig, wanted: int) -> int:
    """Return the offset of an extended capability, 0 where the device lacks it."""
    offset = FIRST_EXTENDED
    for _ in range(MAX_CAPABILITIES):
        header = read(offset, 4)
        if header & 0xFFFF == wanted:
            return offset
        offset = header >> 20 & 0xFFC
        if offset < FIRST_EXTENDED or header == 0xFFFFFFFF:
            return 0
    return 0


def _read_number(descriptor: int, offset: int, size: int) -> int:
    part = os.pread(descriptor, size, offset)
    if len(part) < size:
        raise ConfigTooShort
    return int.from_bytes(part, "little")


def read_aer(root: NodeRoot) -> LazyTree:
    """Return the `aer` branch: every PCI device that counts errors, by address."""
    try:
        addresses = root.list_names(PCI_DEVICES)
    except OSError as error:
        return leaf_for_error(PCI_DEVICES, error)
    devices = {}
    for pci in addresses:
        folder = f"{PCI_DEVICES}/{pci}"
        if root.exists(f"{folder}/aer_dev_fatal"):
            counters = {name: root.defer_read(f"{folder}/aer_dev_{name}", parse_aer_total) for name in SEVERITIES}
            devices[pci.lower()] = counters
    return devices or absent(f"no device in {PCI_DEVICES} reports errors")


def parse_aer_total(text: str) -> int:
    """Return the number on the `TOTAL_ERR_…` line. Raises ValueError unless there is exactly one."""
    (count,) = re.findall(r"^TOTAL_ERR_\w+ (\d+)$", text, re.MULTILINE)
    return int(count)
