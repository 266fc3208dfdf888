"""PCI devices that matter to a GPU node, the bridges above them, and how their links trained.

A bridge's configuration space: what kind of port it is, and which access controls (ACS) it enforces.

Read in pieces of a few bytes: the whole 4 KiB would ask the device a thousand times. Only root is given more than
the first 64 bytes.

What the kernel tells of a device in its `uevent` file: `KEY=value` lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from assay.model.reading import absent, failed, value
from assay.probe.node_access import LazyTree, NodeRoot, Tree, leaf_for_error

PCI_EXPRESS = 0x10  # capability; PCI Express Base Specification 6.2, 7.5.3
ACS = 0x0D  # extended capability; 7.7.11
FIRST_EXTENDED = 0x100
MOST_STEPS = 64
PORTS = {4: "root port", 5: "switch upstream", 6: "switch downstream", 7: "to PCI", 8: "from PCI"}
CONTROLS = (
    "source_validation",
    "translation_blocking",
    "request_redirect",
    "completion_redirect",
    "upstream_forwarding",
    "egress_control",
    "direct_translated",
)


class ConfigTooShort(Exception):
    """The configuration space ends before the answer."""


ReadConfig = Callable[[int, int], int]
"""(offset, size in bytes) → number. Raises TooShort."""


def read_bridge(root: NodeRoot, folder: str) -> Tree:
    """Return a bridge's branch: `kind`, the `buses` behind it (first, last), the `acs` controls that are on."""
    path = f"{folder}/config"
    try:
        descriptor = os.open(root.local_path(path), os.O_RDONLY)
    except OSError as error:
        return leaf_for_error(path, error)
    try:
        return _bridge(path, lambda offset, size: _number(descriptor, offset, size))
    except OSError as error:
        return leaf_for_error(path, error)
    finally:
        os.close(descriptor)


def _bridge(path: str, word: ReadConfig) -> Tree:
    why = f"{path}: too short for this answer; only root is given all of it"
    return {
        "kind": _or_failed(lambda: _kind(word), why),
        "buses": _or_failed(lambda: value([word(0x19, 1), word(0x1A, 1)]), why),
        "acs": _or_failed(lambda: _acs(word), why),
    }


def _or_failed(ask: Callable[[], Tree], why: str) -> Tree:
    try:
        return ask()
    except ConfigTooShort:
        return failed(why)


def _kind(word: ReadConfig) -> Tree:
    at = _express(word)
    if not at:
        return value("bridge")
    return value(PORTS.get(word(at + 2, 2) >> 4 & 0xF, "bridge"))


def _acs(word: ReadConfig) -> Tree:
    at = _extended(word, ACS) if _express(word) else 0
    control = word(at + 6, 2) if at else 0
    return value([name for bit, name in enumerate(CONTROLS) if control >> bit & 1])


def _express(word: ReadConfig) -> int:
    """Return where the PCI Express capability is, 0 for a device without one."""
    at = word(0x34, 1) if word(0x06, 2) & 0x10 else 0
    for _ in range(MOST_STEPS):
        if not at or word(at, 1) == PCI_EXPRESS:
            return at
        at = word(at + 1, 1) & 0xFC
    return 0


def _extended(word: ReadConfig, wanted: int) -> int:
    """Return where an extended capability is, 0 for none."""
    at = FIRST_EXTENDED
    for _ in range(MOST_STEPS):
        header = word(at, 4)
        if header & 0xFFFF == wanted:
            return at
        at = header >> 20 & 0xFFC
        if at < FIRST_EXTENDED or header == 0xFFFFFFFF:
            return 0
    return 0


def _number(descriptor: int, offset: int, size: int) -> int:
    part = os.pread(descriptor, size, offset)
    if len(part) < size:
        raise ConfigTooShort
    return int.from_bytes(part, "little")


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


class BusRange(NamedTuple):
    """The buses behind a bridge: `first` is its secondary one, `last` its subordinate one."""

    domain: str
    first: int
    last: int

    def contains(self, address: str) -> bool:
        """Say whether a device sits behind the bridge."""
        domain, bus, _ = address.split(":")
        return domain == self.domain and self.first <= int(bus, 16) <= self.last


def read_pci(root: NodeRoot) -> LazyTree:
    """Return the `pci` branch by address: GPUs, adapters, drives and switches, and the bridges that lead to them."""
    try:
        classes = {name: _class(root, name) for name in root.list_names(PCI_DEVICES)}
    except OSError as error:
        return leaf_for_error(PCI_DEVICES, error)
    ends = {name: PCI_KINDS[code] for name, code in classes.items() if code in PCI_KINDS}
    bridges = _above(root, [name for name, code in classes.items() if code == BRIDGE_CLASS], list(ends))
    found: dict[str, LazyTree] = {name.lower(): _end(root, name, kind) for name, kind in ends.items()}
    found |= {name.lower(): partial(read_bridge, root, f"{PCI_DEVICES}/{name}") for name in bridges}  # type: ignore[misc]
    return found or absent(f"{PCI_DEVICES} has no GPU, adapter, drive or switch")


def _class(root: NodeRoot, name: str) -> str:
    """Return a device's class and subclass, `0x0302`; "" for one that vanished meanwhile."""
    try:
        return root.read_start(f"{PCI_DEVICES}/{name}/class", 6).decode(errors="replace")
    except OSError:
        return ""


def _above(root: NodeRoot, bridges: Iterable[str], ends: list[str]) -> Iterator[str]:
    """Yield the bridges with one of the devices behind them."""
    for name in bridges:
        try:
            header = root.read_start(f"{PCI_DEVICES}/{name}/config", 64)
        except OSError:
            continue
        buses = BusRange(name.split(":")[0], *header[0x19:0x1B]) if len(header) == 64 else None
        if buses and any(buses.contains(end) for end in ends):
            yield name


def _end(root: NodeRoot, name: str, kind: str) -> LazyTree:
    folder = f"{PCI_DEVICES}/{name}"
    return {
        "kind": value(kind),
        "link": partial(read_link, root, folder),
        "numa_node": partial(read_numa_node, root, folder),
        "iommu": partial(_iommu, root, folder),
    }


def _iommu(root: NodeRoot, folder: str) -> Tree:
    """Return what the IOMMU does with a device's addresses: `identity`, `DMA`, `DMA-FQ`; `none` where it has no say."""
    leaf = root.read_leaf(f"{folder}/iommu_group/type")
    return value("none") if "absent" in leaf and root.exists(folder) else leaf


def read_numa_node(root: NodeRoot, folder: str) -> Tree:
    """Return the NUMA node that a device is near to; -1 is the kernel's way to say that it does not know."""
    leaf = root.read_leaf(f"{folder}/numa_node", int)
    return absent(f"{folder}: the firmware names no NUMA node") if leaf.get("value", 0) < 0 else leaf


def read_link(root: NodeRoot, folder: str) -> Tree:
    """Return how a link trained and what the device could do; one that is soldered inside a chip has none."""
    return {
        "width": root.read_leaf(f"{folder}/current_link_width", parse_link_width),
        "generation": root.read_leaf(f"{folder}/current_link_speed", parse_link_generation),
        "max_width": root.read_leaf(f"{folder}/max_link_width", parse_link_width),
        "max_generation": root.read_leaf(f"{folder}/max_link_speed", parse_link_generation),
    }


def parse_link_width(text: str) -> int:
    """Turn `16` into 16 lanes. Raises ValueError for 0 and 255, which mean that there is no link."""
    lanes = int(text)
    if not 0 < lanes < 255:
        raise ValueError(text)
    return lanes


def parse_link_generation(text: str) -> int:
    """Turn `32.0 GT/s PCIe` into 5. Raises ValueError for a speed of no generation."""
    speed, unit = text.split()[:2]
    if unit != "GT/s" or f"{float(speed):.1f}" not in GENERATIONS:
        raise ValueError(text)
    return GENERATIONS[f"{float(speed):.1f}"]


PCI_SLOT_NAME = re.compile(r"^PCI_SLOT_NAME=([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$", re.MULTILINE)


def parse_pci_slot(text: str) -> str:
    """Return the PCI address of the device, as Linux writes it. Raises ValueError for a device of another bus."""
    found = PCI_SLOT_NAME.search(text)
    if found is None:
        raise ValueError("no PCI device")
    return found[1].lower()
