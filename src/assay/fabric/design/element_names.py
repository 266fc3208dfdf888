"""Finds the node, device or port of a design that a person names, in any form that assay itself prints."""

from __future__ import annotations

import re
from typing import Literal

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.fabric.cable import PortId
from assay.model.text.lists import suggest_nearest

FORMS = "name a node, a switch, a GUID, a box, plane 1, or a port: leaf-su01-r0[33], leaf-su01-r0[17/1], n0005/mlx5_3"
PORT_FORMS = (
    re.compile(r"(.+)\[(?:port )?(\w+(?:/\w+)*)\]"),
    re.compile(r"(.+?)(?: port |[ /:])(\d+(?:/\d+)*)"),
)
"""`NAME[33]`, `NAME[17/1]`; `NAME port 17/1`, `NAME 17/1`, `NAME/33`, `NAME:33`."""


@frozen
class NamedElement:
    """What a name means: a `node`, a `device`, a `port` of a device, or a `box` or plane with all of its chips.

    A port of a box with planes is that of its first chip; the `box` has them all.
    """

    kind: Literal["node", "device", "port", "box"]
    node: str = ""
    device: DesignedDevice | None = None
    port: PortId | None = None
    box: tuple[DesignedDevice, ...] = ()


def find_element(topology: CompiledTopology, text: str) -> NamedElement:
    """Return what `text` names. Raises AssayError for a name that the design lacks, or that several devices have."""
    name = re.sub(r" \([^()]* U\d+\)$", "", text.strip())
    if name and any(device.node == name for device in topology):
        return NamedElement("node", node=name)
    chips = tuple(
        device
        for device in topology
        if device.box
        and (
            name == device.box
            or (device.module and name == f"{device.box} {device.module}")
            or (device.plane and name == f"plane {device.plane}")
        )
    )
    if chips:
        return NamedElement("box", box=chips)
    if device := _find_device(topology, name):
        return NamedElement("device", device=device)
    for form in PORT_FORMS:
        match = form.fullmatch(name)
        if match and (device := _find_device(topology, match[1])):
            return NamedElement("port", device=device, port=_find_port(device, match[2], text))
        if match and (chips := tuple(chip for chip in topology if chip.plane and chip.box == match[1])):
            return NamedElement("port", device=chips[0], port=_find_port(chips[0], match[2], text), box=chips)
    device_name = next((match[1] for form in PORT_FORMS if (match := form.fullmatch(name))), name)
    known = dict.fromkeys(part for device in topology for part in (device.node, device.name, device.box) if part)
    near = suggest_nearest(device_name, known)
    raise AssayError(f"the fabric {topology.name} has no {text!r}", fix=f"{near} {FORMS}".strip())


def _find_device(topology: CompiledTopology, name: str) -> DesignedDevice | None:
    """Return the device of this name or GUID, None without one. Raises AssayError if several have the name."""
    names = (name, name.replace("/", " "))
    named = [
        device
        for device in topology
        if device.guid == name or device.name in names or device.name == f"{name} {device.guid}"
    ]
    if len(named) > 1:
        which = ", ".join(f"{device.guid}{f' in rack {device.rack}' if device.rack else ''}" for device in named)
        raise AssayError(
            f"{len(named)} devices of the fabric {topology.name} are called {name!r}", fix=f"name one by GUID: {which}"
        )
    return named[0] if named else None


def _find_port(device: DesignedDevice, text: str, element: str) -> PortId:
    """Return the port of this number, or with this label. A label wins: it is what is printed at the port."""
    numbers = range(1, device.ports + 1)
    labelled = [number for number in numbers if device.label(number) == text]
    number = labelled[0] if labelled else int(text) if text.isdecimal() else 0
    if number not in numbers:
        raise AssayError(
            f"{device.name} has no port {text!r}, as in {element!r}",
            fix=f"its ports are 1 to {device.ports}, labelled {device.label(1) or 1} to {device.label(device.ports)}",
        )
    return PortId(device.guid, number)
