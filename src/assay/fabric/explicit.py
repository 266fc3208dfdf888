"""The cables that a design lists one by one: their ends become devices and ports like those of the rules."""

from __future__ import annotations

from collections.abc import Mapping

from assay.fabric.design import adapters
from assay.fabric.planned import Device, Links
from assay.model.cable import Port
from assay.model.design import FabricDesign
from assay.model.errors import Trouble
from assay.model.explicit import ExplicitEnd
from assay.model.fleet import Fleet


class Explicit:
    """The list of one design. `devices` holds those of the rules, and grows by those that only the list names."""

    def __init__(self, design: FabricDesign, fleet: Fleet, devices: Mapping[str, Device]) -> None:
        self._design, self._fleet = design, fleet
        self.devices = dict(devices)
        self._names = {device.name: device for device in devices.values()}

    def add(self, links: Links) -> None:
        """Add the cables. Raises Trouble for an end that is nowhere, or on a port that has a cable already."""
        for end in (end for listed in self._design.cables for _, end in listed.ends if end.guid):
            self._own(end, str(end.guid))
        guids = list(self.devices)
        used = {Port(guids[n], p) for a, a_port, b, b_port in links for n, p in ((a, a_port), (b, b_port))}
        plugs = [
            [self._port(f"cables.{place}.{side}", end, used) for side, end in listed.ends]
            for place, listed in enumerate(self._design.cables)
        ]
        number = {guid: place for place, guid in enumerate(self.devices)}
        for (a, b), listed in zip(plugs, self._design.cables, strict=True):
            links.add([number[a.guid]], [a.number], [number[b.guid]], [b.number])
            links.alike(listed.rate or self._design.rate, listed.length_m)

    def _port(self, path: str, end: ExplicitEnd, used: set[Port]) -> Port:
        device = self._device(path, end)
        if end.port > device.ports:
            raise self._trouble(path, f"{device.name} has no port {end.port}", f"it has {device.ports}")
        port = Port(device.guid, end.port)
        if port in used:
            raise self._trouble(path, f"{device.end(end.port)} has two cables", "take one of the two out")
        used.add(port)
        return port

    def _device(self, path: str, end: ExplicitEnd) -> Device:
        """Return the device of an end: by its GUID, else by its name."""
        if end.guid is not None:
            return self._own(end, end.guid)
        if end.device not in self._names:
            for device in self._adapters(end.device.partition(" ")[0]):
                self._add(device)
        if end.device not in self._names:
            fix = "name a switch of the design or an adapter (`n0001 mlx5_0`), or give its `guid`"
            raise self._trouble(path, f"there is no device {end.device}", fix)
        known = self._names[end.device]
        return self._own(end, known.guid)

    def _own(self, end: ExplicitEnd, guid: str) -> Device:
        """Return the device of a GUID. One that only the list names has as many ports as the list says."""
        known = self.devices.get(guid)
        if known is None:
            device = Device(guid, end.device, end.kind, end.port, end.rack, end.u, self._design.site)
            return self._add(device)
        if known.labels is None and not known.node and known.ports < end.port:
            return self._add(known._replace(ports=end.port))
        return known

    def _adapters(self, name: str) -> list[Device]:
        node = self._fleet.nodes.get(name)
        return adapters(self._design, node, self._fleet) if node else []

    def _add(self, device: Device) -> Device:
        self.devices[device.guid] = self._names[device.name] = device
        return device

    def _trouble(self, path: str, what: str, fix: str) -> Trouble:
        key = f"FabricDesign/{self._design.name}"
        return Trouble(what, where=self._fleet.lines.get((key, path), f"{key} {path}"), fix=fix)
