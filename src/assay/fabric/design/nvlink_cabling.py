"""Compiles the NVLink domain of a rack: GPUs are adapters of their nodes, NVSwitch ASICs are chips of their trays."""

from __future__ import annotations

from itertools import repeat

from assay.fabric.design.compiled_topology import CableTable
from assay.fabric.design.designed_device import DesignedDevice
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.nvlink_domain import NvlinkDomain


def list_nvlink_devices(design: FabricDesign, domain: NvlinkDomain, fleet: Fleet) -> list[DesignedDevice]:
    """Return the GPUs, tray by tray, then the ASICs. Raises AssayError for a node that the inventory lacks."""
    gpus, asics = domain.list_places("gpu"), domain.list_places("asic")
    names, devices = domain.node_names, list[DesignedDevice]()
    for place in gpus:
        node = _find_node(design, names[place.tray], fleet)
        where = (node.rack, node.u, node.site or design.site, node.name)
        devices.append(DesignedDevice(place.guid, f"{node.name} gpu{place.device}", "hca", len(asics), *where))
    for place in asics:
        tray = domain.switch_name.format(tray=place.tray)
        chip = DesignedDevice(
            place.guid, f"{tray} asic{place.device}", "switch", len(gpus), domain.rack, 0, design.site, box=tray
        )
        devices.append(chip)
    return devices


def _find_node(design: FabricDesign, name: str, fleet: Fleet) -> Node:
    if name not in fleet.nodes:
        key = f"FabricDesign/{design.name}"
        raise AssayError(
            f"the design names the node {name}, which the inventory does not have",
            where=fleet.lines.get((key, "nvlink.compute_trays"), f"FabricDesign {design.name}"),
            fix="add the node to inventory/, or correct `nvlink.compute_trays`",
        )
    return fleet.nodes[name]


def add_nvlinks(design: FabricDesign, domain: NvlinkDomain, links: CableTable, first: int) -> None:
    """Add a link from each GPU to each ASIC. `first` is the index of the first GPU among the topology's devices."""
    gpus, asics = len(domain.list_places("gpu")), len(domain.list_places("asic"))
    for gpu in range(gpus):
        switches = range(first + gpus, first + gpus + asics)
        links.add(repeat(first + gpu, asics), range(1, asics + 1), switches, repeat(gpu + 1, asics))
    links.set_rate_and_length(design.rate, 0)
