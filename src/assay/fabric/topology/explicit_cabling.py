"""What a design says one by one: its devices, cables, overrides and spares, put beside what its rules give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from assay.fabric.topology.adapters import list_adapters
from assay.fabric.topology.compiled_topology import CableTable, DesignedDevice
from assay.model.errors import AssayError
from assay.model.fabric.design_cables_and_partitions import CableOverride, ExplicitDevice, ExplicitEnd, parse_port_range
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fabric.ports_and_cables import PortId
from assay.model.fleet import Fleet
from assay.model.node import Node

DEVICE_NAME_HINT = "name a switch of the design or an adapter (`n0001 mlx5_0`), or give its `guid`"


class ExplicitCabling:
    """The lists of one design. `devices` holds those of the rules, and grows by those that only the lists name."""

    def __init__(self, design: FabricDesign, fleet: Fleet, devices: Mapping[str, DesignedDevice]) -> None:
        self._design, self._fleet = design, fleet
        self.devices = dict(devices)
        self._names = {device.name: device for device in devices.values()}
        for number, one in enumerate(design.devices):
            if one.guid in devices:
                said = f"{one.name} has the GUID {one.guid} of {devices[one.guid].name}"
                raise self._trouble(f"devices.{number}.guid", said, "a GUID belongs to one device")
            known = self._adapter(one.guid)
            self._add(known._replace(ports=max(known.ports, one.ports)) if known else self._listed(one))

    def apply_overrides(self, links: CableTable) -> CableTable:
        """Return the cables of the rules with the overrides in place; those that they keep come last."""
        if not self._design.overrides:
            return links
        guids = list(self.devices)
        plugs = {(guids[n], p): i for i, ends in enumerate(links) for n, p in (ends[:2], ends[2:])}
        changed: dict[int, list[tuple[int, CableOverride]]] = {}
        for number, one in enumerate(self._design.overrides):
            device = self._named(f"overrides.{number}.device", one.device)
            cable = plugs.get((device.guid, one.port))
            if cable is None:
                said = f"the rules have no cable at port {one.port} of {one.device}"
                raise self._trouble(f"overrides.{number}.port", said, "name a port of the rules, or add to `cables`")
            changed.setdefault(cable, []).append((number, one))
        kept = links.without(changed)
        used = _used(guids, kept)
        rates = list(links.rates())
        for cable, overrides in changed.items():
            self._replug(kept, used, links, cable, overrides, rates[cable])
        return kept

    def _replug(
        self,
        kept: CableTable,
        used: set[PortId],
        links: CableTable,
        cable: int,
        overrides: list[tuple[int, CableOverride]],
        rate: str,
    ) -> None:
        """Add one cable of the rules again as its overrides have it; not at all where one of them takes it out."""
        guids = list(self.devices)
        ends = {PortId(guids[n], p): None for n, p in links.ends(cable)}
        plugs: dict[PortId, PortId] = {port: port for port in ends}
        length = links.length(cable)
        for number, one in overrides:
            if one.to is None:
                return
            here = PortId(self._named(f"overrides.{number}.device", one.device).guid, one.port)
            device = self._named(f"overrides.{number}.to.device", one.to.device)
            plugs[here] = self._within(f"overrides.{number}.to", device, one.to.port)
            rate, length = one.rate or rate, length if one.length_m is None else one.length_m
        for port in plugs.values():
            if port in used:
                raise self._taken(f"overrides.{overrides[0][0]}.to", port)
            used.add(port)
        self._join(kept, list(self.devices), *plugs.values())
        kept.set_rate_and_length(rate, length)

    def add_listed_cables(self, links: CableTable) -> None:
        """Add the listed cables. Raises Trouble for an end that is nowhere, or on a port that has a cable already."""
        for end in (end for listed in self._design.cables for _, end in listed.ends):
            if end.guid_or_device_guid:
                self._own(end, end.guid_or_device_guid)
        used = _used(list(self.devices), links)
        plugs = [
            [self._port(f"cables.{place}.{side}", end, used) for side, end in listed.ends]
            for place, listed in enumerate(self._design.cables)
        ]
        number = {guid: place for place, guid in enumerate(self.devices)}
        for (a, b), listed in zip(plugs, self._design.cables, strict=True):
            links.add([number[a.guid]], [a.number], [number[b.guid]], [b.number])
            links.set_rate_and_length(listed.rate or self._design.rate, listed.length_m)

    def list_spare_ports(self, links: CableTable) -> Iterator[PortId]:
        """Yield the ports that are free on purpose. Raises Trouble for one that has a cable."""
        used = _used(list(self.devices), links) if self._design.spares else set()
        for number, one in enumerate(self._design.spares):
            device = self._named(f"spares.{number}.device", one.device)
            for port in parse_port_range(one.ports) if one.ports else range(1, device.ports + 1):
                spare = self._within(f"spares.{number}", device, port)
                if spare in used:
                    raise self._taken(f"spares.{number}", spare)
                yield spare

    def _port(self, path: str, end: ExplicitEnd, used: set[PortId]) -> PortId:
        device = self._own(end, end.guid_or_device_guid) if end.guid_or_device_guid else self._named(path, end.device)
        if not end.guid_or_device_guid:
            device = self._own(end, device.guid)
        port = self._within(path, device, end.port)
        if port in used:
            raise self._taken(path, port)
        used.add(port)
        return port

    def _within(self, path: str, device: DesignedDevice, port: int) -> PortId:
        if port > device.ports:
            raise self._trouble(path, f"{device.name} has no port {port}", f"it has {device.ports}")
        return PortId(device.guid, port)

    def _taken(self, path: str, port: PortId) -> AssayError:
        end = self.devices[port.guid].end(port.number)
        return self._trouble(path, f"{end} has two cables", "take one of the two out")

    def _named(self, path: str, name: str) -> DesignedDevice:
        """Return the device that is called so: a switch, an adapter, or a device by its GUID."""
        if name not in self._names:
            for device in self._adapters(name.partition(" ")[0]):
                self._add(device)
        found = self._names.get(name) or self.devices.get(name)
        if found is None:
            raise self._trouble(path, f"there is no device {name}", DEVICE_NAME_HINT)
        return found

    def _own(self, end: ExplicitEnd, guid: str) -> DesignedDevice:
        """Return the device of a GUID. One that only the list of cables names has as many ports as that says."""
        known = self.devices.get(guid) or self._adapter(guid)
        if known is None:
            return self._add(DesignedDevice(guid, end.device, end.kind, end.port, end.rack, end.u, self._design.site))
        if guid not in self.devices:
            return self._add(known)
        if known.labels is None and not known.node and known.ports < end.port:
            return self._add(known._replace(ports=end.port))
        return known

    def _listed(self, one: ExplicitDevice) -> DesignedDevice:
        model = self._design.switch if one.kind == "switch" and not one.ports else None
        ports = model.port_count if model else one.ports or 1
        node = one.node if one.kind == "hca" else ""
        device = DesignedDevice(one.guid, one.name, one.kind, ports, one.rack, one.u, self._design.site, node)
        return device._replace(product=model.product, labels=model.port_labelling) if model else device

    def _adapters(self, name: str) -> list[DesignedDevice]:
        node = self._fleet.nodes.get(name)
        return list_adapters(self._design, node, self._fleet) if node else []

    def _adapter(self, guid: str) -> DesignedDevice | None:
        """Return the inventory's adapter of this GUID."""
        node = self._owners.get(guid)
        return (
            next((one for one in list_adapters(self._design, node, self._fleet) if one.guid == guid), None)
            if node
            else None
        )

    @cached_property
    def _owners(self) -> Mapping[str, Node]:
        return {guid: node for node in self._fleet.nodes.values() for guid in node.hca_guids}

    @staticmethod
    def _join(links: CableTable, guids: list[str], a: PortId, b: PortId) -> None:
        links.add([guids.index(a.guid)], [a.number], [guids.index(b.guid)], [b.number])

    def _add(self, device: DesignedDevice) -> DesignedDevice:
        self.devices[device.guid] = self._names[device.name] = device
        return device

    def _trouble(self, path: str, what: str, fix: str) -> AssayError:
        key = f"FabricDesign/{self._design.name}"
        return AssayError(what, where=self._fleet.lines.get((key, path), f"{key} {path}"), fix=fix)


def _used(guids: list[str], links: Iterable[tuple[int, int, int, int]]) -> set[PortId]:
    return {PortId(guids[n], p) for a, a_port, b, b_port in links for n, p in ((a, a_port), (b, b_port))}
