"""PCI devices that matter to a GPU node, the bridges above them, and how their links trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from assay.model.reading import absent, value
from assay.probe.files import Root, Tree, unread
from assay.probe.lazy import Lazy
from assay.probe.pci_config import read_bridge

DEVICES = "/sys/bus/pci/devices"
KINDS = {  # PCI Code and ID Assignment Specification: base class and subclass
    "0x0108": "nvme",
    "0x0200": "ethernet",
    "0x0207": "infiniband",
    "0x0300": "gpu",
    "0x0302": "gpu",
    "0x0680": "nvswitch",
    "0x1200": "accelerator",
}
BRIDGE = "0x0604"
GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}  # GT/s


class Buses(NamedTuple):
    """The buses behind a bridge: `first` is its secondary one, `last` its subordinate one."""

    domain: str
    first: int
    last: int

    def hold(self, address: str) -> bool:
        """Say whether a device sits behind the bridge."""
        domain, bus, _ = address.split(":")
        return domain == self.domain and self.first <= int(bus, 16) <= self.last


def read_pci(root: Root) -> Lazy:
    """Return the `pci` branch by address: GPUs, adapters, drives and switches, and the bridges that lead to them."""
    try:
        classes = {name: _class(root, name) for name in root.names(DEVICES)}
    except OSError as error:
        return unread(DEVICES, error)
    ends = {name: KINDS[code] for name, code in classes.items() if code in KINDS}
    bridges = _above(root, [name for name, code in classes.items() if code == BRIDGE], list(ends))
    found: dict[str, Lazy] = {name.lower(): _end(root, name, kind) for name, kind in ends.items()}
    found |= {name.lower(): partial(read_bridge, root, f"{DEVICES}/{name}") for name in bridges}  # type: ignore[misc]
    return found or absent(f"{DEVICES} has no GPU, adapter, drive or switch")


def _class(root: Root, name: str) -> str:
    """Return a device's class and subclass, `0x0302`; "" for one that vanished meanwhile."""
    try:
        return root.start(f"{DEVICES}/{name}/class", 6).decode(errors="replace")
    except OSError:
        return ""


def _above(root: Root, bridges: Iterable[str], ends: list[str]) -> Iterator[str]:
    """Yield the bridges with one of the devices behind them."""
    for name in bridges:
        try:
            header = root.start(f"{DEVICES}/{name}/config", 64)
        except OSError:
            continue
        buses = Buses(name.split(":")[0], *header[0x19:0x1B]) if len(header) == 64 else None
        if buses and any(buses.hold(end) for end in ends):
            yield name


def _end(root: Root, name: str, kind: str) -> Lazy:
    folder = f"{DEVICES}/{name}"
    return {
        "kind": value(kind),
        "link": partial(read_link, root, folder),
        "numa_node": partial(numa_node, root, folder),
        "iommu": partial(_iommu, root, folder),
    }


def _iommu(root: Root, folder: str) -> Tree:
    """Return what the IOMMU does with a device's addresses: `identity`, `DMA`, `DMA-FQ`; `none` where it has no say."""
    leaf = root.read(f"{folder}/iommu_group/type")
    return value("none") if "absent" in leaf and root.exists(folder) else leaf


def numa_node(root: Root, folder: str) -> Tree:
    """Return the NUMA node that a device is near to; -1 is the kernel's way to say that it does not know."""
    leaf = root.read(f"{folder}/numa_node", int)
    return absent(f"{folder}: the firmware names no NUMA node") if leaf.get("value", 0) < 0 else leaf


def read_link(root: Root, folder: str) -> Tree:
    """Return how a link trained and what the device could do; one that is soldered inside a chip has none."""
    return {
        "width": root.read(f"{folder}/current_link_width", width),
        "generation": root.read(f"{folder}/current_link_speed", generation),
        "max_width": root.read(f"{folder}/max_link_width", width),
        "max_generation": root.read(f"{folder}/max_link_speed", generation),
    }


def width(text: str) -> int:
    """Turn `16` into 16 lanes. Raises ValueError for 0 and 255, which mean that there is no link."""
    lanes = int(text)
    if not 0 < lanes < 255:
        raise ValueError(text)
    return lanes


def generation(text: str) -> int:
    """Turn `32.0 GT/s PCIe` into 5. Raises ValueError for a speed of no generation."""
    speed, unit = text.split()[:2]
    if unit != "GT/s" or f"{float(speed):.1f}" not in GENERATIONS:
        raise ValueError(text)
    return GENERATIONS[f"{float(speed):.1f}"]
