"""Applies what a design lists one by one (devices, cables, overrides, spares) to the cabling that its rules give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from assay.fabric.design.adapters import list_adapters
from assay.fabric.design.compiled_topology import CableTable
from assay.fabric.design.designed_device import DesignedDevice
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.design_cables_and_partitions import (
    CableOverride,
    ExplicitDevice,
    ExplicitEnd,
    parse_port_range,
)
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.ports_and_cables import PortId

DEVICE_NAME_HINT = "name a switch of the design or an adapter (`n0001 mlx5_0`), or give its `guid`"


class ExplicitCabling:
    """The lists of one design. `devices` starts with those of the rules, and gains those that only the lists name.

    Methods raise AssayError, with the place in the design, for a device or port that does not exist or is in use.
    """

    def __init__(self, design: FabricDesign, fleet: Fleet, devices: Mapping[str, DesignedDevice]) -> None:
        self._design, self._fleet = design, fleet
        self.devices = dict(devices)
        self._by_name = {device.name: device for device in devices.values()}
        for number, listed in enumerate(design.devices):
            if listed.guid in devices:
                what = f"{listed.name} has the GUID {listed.guid} of {devices[listed.guid].name}"
                raise self._make_error(f"devices.{number}.guid", what, "a GUID belongs to one device")
            adapter = self._find_adapter(listed.guid)
            self._add(
                adapter._replace(ports=max(adapter.ports, listed.ports)) if adapter else self._make_device(listed)
            )

    def apply_overrides(self, links: CableTable) -> CableTable:
        """Return the cables of the rules with the overrides applied. Cables that an override changes come last."""
        if not self._design.overrides:
            return links
        guids = list(self.devices)
        cable_at = {(guids[n], p): i for i, ends in enumerate(links) for n, p in (ends[:2], ends[2:])}
        overrides_of: dict[int, list[tuple[int, CableOverride]]] = {}
        for number, override in enumerate(self._design.overrides):
            device = self._find_device(f"overrides.{number}.device", override.device)
            cable = cable_at.get((device.guid, override.port))
            if cable is None:
                what = f"the rules have no cable at port {override.port} of {override.device}"
                raise self._make_error(f"overrides.{number}.port", what, "name a port of the rules, or add to `cables`")
            overrides_of.setdefault(cable, []).append((number, override))
        remaining = links.without(overrides_of)
        used = _list_used_ports(guids, remaining)
        rates = list(links.rates())
        for cable, overrides in overrides_of.items():
            self._add_overridden_cable(remaining, used, links, cable, overrides, rates[cable])
        return remaining

    def _add_overridden_cable(
        self,
        remaining: CableTable,
        used: set[PortId],
        links: CableTable,
        cable: int,
        overrides: list[tuple[int, CableOverride]],
        rate: str,
    ) -> None:
        """Add one cable of the rules as its overrides change it. Add none if an override removes it (no `to`)."""
        guids = list(self.devices)
        ends = {port: port for port in (PortId(guids[n], p) for n, p in links.ends(cable))}
        length = links.length(cable)
        for number, override in overrides:
            if override.to is None:
                return
            here = PortId(self._find_device(f"overrides.{number}.device", override.device).guid, override.port)
            device = self._find_device(f"overrides.{number}.to.device", override.to.device)
            ends[here] = self._check_port(f"overrides.{number}.to", device, override.to.port)
            rate, length = override.rate or rate, length if override.length_m is None else override.length_m
        for port in ends.values():
            if port in used:
                raise self._make_port_in_use_error(f"overrides.{overrides[0][0]}.to", port)
            used.add(port)
        a, b = ends.values()
        guids = list(self.devices)
        remaining.add([guids.index(a.guid)], [a.number], [guids.index(b.guid)], [b.number])
        remaining.set_rate_and_length(rate, length)

    def add_listed_cables(self, links: CableTable) -> None:
        """Add the listed cables to `links`."""
        for end in (end for listed in self._design.cables for _, end in listed.ends):
            if end.guid_or_device_guid:
                self._find_or_add_device(end, end.guid_or_device_guid)
        used = _list_used_ports(list(self.devices), links)
        cables = [
            [self._use_port(f"cables.{number}.{side}", end, used) for side, end in listed.ends]
            for number, listed in enumerate(self._design.cables)
        ]
        index = {guid: number for number, guid in enumerate(self.devices)}
        for (a, b), listed in zip(cables, self._design.cables, strict=True):
            links.add([index[a.guid]], [a.number], [index[b.guid]], [b.number])
            links.set_rate_and_length(listed.rate or self._design.rate, listed.length_m)

    def list_spare_ports(self, links: CableTable) -> Iterator[PortId]:
        """Yield the ports that are unused on purpose. A spare port with a cable is an error."""
        used = _list_used_ports(list(self.devices), links) if self._design.spares else set()
        for number, spares in enumerate(self._design.spares):
            device = self._find_device(f"spares.{number}.device", spares.device)
            for port in parse_port_range(spares.ports) if spares.ports else range(1, device.ports + 1):
                spare = self._check_port(f"spares.{number}", device, port)
                if spare in used:
                    raise self._make_port_in_use_error(f"spares.{number}", spare)
                yield spare

    def _use_port(self, path: str, end: ExplicitEnd, used: set[PortId]) -> PortId:
        guid = end.guid_or_device_guid or self._find_device(path, end.device).guid
        port = self._check_port(path, self._find_or_add_device(end, guid), end.port)
        if port in used:
            raise self._make_port_in_use_error(path, port)
        used.add(port)
        return port

    def _check_port(self, path: str, device: DesignedDevice, port: int) -> PortId:
        if port > device.ports:
            raise self._make_error(path, f"{device.name} has no port {port}", f"it has {device.ports}")
        return PortId(device.guid, port)

    def _find_device(self, path: str, name: str) -> DesignedDevice:
        """Return the device of a name: a switch, an adapter, or a device by its GUID."""
        if name not in self._by_name and (node := self._fleet.nodes.get(name.partition(" ")[0])):
            for adapter in list_adapters(self._design, node, self._fleet):
                self._add(adapter)
        device = self._by_name.get(name) or self.devices.get(name)
        if device is None:
            raise self._make_error(path, f"there is no device {name}", DEVICE_NAME_HINT)
        return device

    def _find_or_add_device(self, end: ExplicitEnd, guid: str) -> DesignedDevice:
        """Return the device of a GUID. One that only the list of cables names has as many ports as the list uses."""
        known = self.devices.get(guid) or self._find_adapter(guid)
        if known is None:
            return self._add(DesignedDevice(guid, end.device, end.kind, end.port, end.rack, end.u, self._design.site))
        if guid not in self.devices:
            return self._add(known)
        if known.labels is None and not known.node and known.ports < end.port:
            return self._add(known._replace(ports=end.port))
        return known

    def _make_device(self, listed: ExplicitDevice) -> DesignedDevice:
        model = self._design.switch if listed.kind == "switch" and not listed.ports else None
        ports = model.port_count if model else listed.ports or 1
        node = listed.node if listed.kind == "hca" else ""
        device = DesignedDevice(
            listed.guid, listed.name, listed.kind, ports, listed.rack, listed.u, self._design.site, node
        )
        device = device._replace(box=listed.box, module=listed.module, plane=listed.plane)
        return device._replace(product=model.product, labels=model.port_labelling) if model else device

    def _find_adapter(self, guid: str) -> DesignedDevice | None:
        """Return the inventory's adapter of a GUID."""
        if guid not in self._node_by_guid:
            return None
        adapters = list_adapters(self._design, self._node_by_guid[guid], self._fleet)
        return next((adapter for adapter in adapters if adapter.guid == guid), None)

    @cached_property
    def _node_by_guid(self) -> Mapping[str, Node]:
        return {guid: node for node in self._fleet.nodes.values() for guid in node.hca_guids}

    def _add(self, device: DesignedDevice) -> DesignedDevice:
        self.devices[device.guid] = self._by_name[device.name] = device
        return device

    def _make_port_in_use_error(self, path: str, port: PortId) -> AssayError:
        end = self.devices[port.guid].end(port.number)
        return self._make_error(path, f"{end} has two cables", "remove one of the two")

    def _make_error(self, path: str, what: str, fix: str) -> AssayError:
        key = f"FabricDesign/{self._design.name}"
        return AssayError(what, where=self._fleet.lines.get((key, path), f"{key} {path}"), fix=fix)


def _list_used_ports(guids: list[str], links: Iterable[tuple[int, int, int, int]]) -> set[PortId]:
    return {PortId(guids[n], p) for a, a_port, b, b_port in links for n, p in ((a, a_port), (b, b_port))}
