"""Compiles a FabricDesign for one fleet: every device and every cable that must be there.

First comes what the rules give: the fat tree, or a rack's NVLink domain, whose GPUs are adapters of their nodes and
whose ASICs are chips of their trays. Then what the design lists one by one: devices, cables, overrides, spares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count, repeat

from assay.fabric.design.compiled_topology import CableTable, CompiledTopology
from assay.fabric.design.devices import DesignedDevice, list_adapters
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.design_parts import CableOverride, ExplicitDevice, ExplicitEnd, parse_port_range
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.fat_tree_geometry import CableBundle, FatTreeWiring
from assay.model.specs.fabric.nvlink_domain import NvlinkDomain
from assay.model.specs.fabric.switches import SwitchChip, SwitchModel

DEVICE_NAME_HINT = "name a switch of the design or an adapter (`n0001 mlx5_0`), or give its `guid`"


def compile_topology(design: FabricDesign, fleet: Fleet) -> CompiledTopology:
    """Compile a design.

    Raises AssayError for a node that the inventory lacks, or whose GUIDs are missing or repeated. Also for a listed
    cable, an override or a spare port whose device or port does not exist, or whose port already has a cable.
    """
    hcas = [hca for name in design.node_names() for hca in _list_hcas(design, _find_node(design, fleet, name), fleet)]
    switches = [_make_switch(design, design.switch, chip) for chip in design.chips() if design.switch]
    nvlink = list_nvlink_devices(design, design.nvlink, fleet) if design.nvlink else []
    devices = _index_by_guid(design, [*hcas, *switches, *nvlink])
    links = CableTable()
    if design.fat_tree:
        for plane in range(design.planes):
            chips = range(len(hcas) + plane, len(hcas) + len(switches), design.planes)
            _add_rule_cables(design, design.fat_tree, links, chips, plane)
    if design.nvlink:
        add_nvlinks(design, design.nvlink, links, len(hcas) + len(switches))
    if not (design.cables or design.devices or design.overrides or design.spares):
        return CompiledTopology(design.name, devices.values(), links)

    explicit = ExplicitCabling(design, fleet, devices)
    links = explicit.apply_overrides(links)
    explicit.add_listed_cables(links)
    return CompiledTopology(design.name, explicit.devices.values(), links, spare=explicit.list_spare_ports(links))


def _find_node(design: FabricDesign, fleet: Fleet, name: str) -> Node:
    if name not in fleet.nodes:
        if name in design.adapters:
            return Node(name, "", "", "", 0, "", "", "", tuple(design.adapters[name]))
        raise AssayError(
            f"the design names the node {name}, which the inventory does not have",
            where=fleet.lines.get((f"FabricDesign/{design.name}", "nodes"), f"FabricDesign {design.name}"),
            fix="add the node to inventory/, write its GUIDs in `adapters`, or remove it from `nodes`",
        )
    return fleet.nodes[name]


def _list_hcas(design: FabricDesign, node: Node, fleet: Fleet) -> list[DesignedDevice]:
    if len(node.hca_guids) != (many := design.adapters_per_node):
        of_rails = f"{design.rails} rails" if many == design.rails else f"{many} adapters, with {design.rails} rails"
        raise AssayError(
            f"{node.name} has {len(node.hca_guids)} hca_guids, but the fabric {design.name} has {of_rails}",
            where=f"inventory: {node.name}",
            fix="list the GUID of one adapter per rail, in rail order, in the host's hca_guids",
        )
    return list_adapters(design, node, fleet)


def _make_switch(design: FabricDesign, model: SwitchModel, chip: SwitchChip) -> DesignedDevice:
    return DesignedDevice(
        chip.guid,
        chip.name,
        "switch",
        model.port_count,
        chip.switch.rack,
        chip.switch.u,
        design.site,
        product=model.product,
        labels=model.port_labelling,
        box=chip.box,
        module=chip.module,
        plane=chip.plane,
    )


def _index_by_guid(design: FabricDesign, devices: list[DesignedDevice]) -> dict[str, DesignedDevice]:
    by_guid: dict[str, DesignedDevice] = {}
    for device in devices:
        first = by_guid.setdefault(device.guid, device)
        if first is not device:
            raise AssayError(
                f"{first.name} and {device.name} of the fabric {design.name} have the same GUID {device.guid}",
                where=f"inventory: {device.node or device.name}",
                fix="a GUID belongs to one device; read it from the device's label or from ibstat",
            )
    return by_guid


def _add_rule_cables(design: FabricDesign, wiring: FatTreeWiring, links: CableTable, chips: range, plane: int) -> None:
    """Add the cables of the rules in one plane, from 0. The adapters are the first devices.

    `chips` are the numbers of the switches' chips of the plane among the devices, tier by tier.
    """
    lengths, many = design.lengths, len(wiring.leaves.at)
    leaves, spines, cores = chips[:many], chips[many:], chips[many + len(wiring.spines.at) :]
    _add_node_cables(design, wiring, links, leaves, plane)
    links.set_rate_and_length(design.rate_of("node_leaf"), lengths.node_leaf)
    _add_bundles(links, wiring.leaf_spine_bundles(), leaves, spines)
    links.set_rate_and_length(design.rate_of("leaf_spine"), lengths.leaf_spine)
    _add_bundles(links, wiring.spine_core_bundles(), spines, cores)
    links.set_rate_and_length(design.rate_of("spine_core"), lengths.spine_core)


def _add_node_cables(design: FabricDesign, wiring: FatTreeWiring, links: CableTable, leaves: range, plane: int) -> None:
    """Add the nodes' cables in one plane. `leaves` are the numbers of the leaves among the devices.

    The adapters come node by node, and within a node rail by rail; a gap has none.
    """
    many, rails = len(wiring.leaf_down_ports), wiring.rails
    down = [wiring.find_leaf_ports(leaf)[0] for leaf in range(len(leaves))]
    adapters, ports = zip(*design.rail_ports, strict=True)
    at = [port + plane for port in ports]
    places = (number for number in range(wiring.nodes) if number not in wiring.gaps)
    for first, number in zip(count(0, design.adapters_per_node), places, strict=False):
        unit, place = divmod(number, many)
        own = slice(unit * rails, (unit + 1) * rails)
        links.add([first + adapter for adapter in adapters], at, leaves[own], [ports[place] for ports in down[own]])


def _add_bundles(links: CableTable, bundles: Iterable[CableBundle], lower: range, upper: range) -> None:
    """Add the cables between two tiers. `lower` and `upper` are the numbers of their switches among the devices."""
    for bundle in bundles:
        many = len(bundle.lower_ports)
        a, b = repeat(lower[bundle.lower], many), repeat(upper[bundle.upper], many)
        links.add(a, bundle.lower_ports, b, bundle.upper_ports)


def list_nvlink_devices(design: FabricDesign, domain: NvlinkDomain, fleet: Fleet) -> list[DesignedDevice]:
    """Return the GPUs, tray by tray, then the ASICs. Raises AssayError for a node that the inventory lacks."""
    gpus, asics = domain.list_places("gpu"), domain.list_places("asic")
    names, devices = domain.node_names, list[DesignedDevice]()
    for place in gpus:
        node = _find_nvlink_node(design, names[place.tray], fleet)
        where = (node.rack, node.u, node.site or design.site, node.name)
        devices.append(DesignedDevice(place.guid, f"{node.name} gpu{place.device}", "hca", len(asics), *where))
    for place in asics:
        tray = domain.switch_name.format(tray=place.tray)
        chip = DesignedDevice(
            place.guid, f"{tray} asic{place.device}", "switch", len(gpus), domain.rack, 0, design.site, box=tray
        )
        devices.append(chip)
    return devices


def _find_nvlink_node(design: FabricDesign, name: str, fleet: Fleet) -> Node:
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
                problem = f"{listed.name} has the GUID {listed.guid} of {devices[listed.guid].name}"
                raise self._make_error(f"devices.{number}.guid", problem, "a GUID belongs to one device")
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
                problem = f"the rules have no cable at port {override.port} of {override.device}"
                raise self._make_error(
                    f"overrides.{number}.port", problem, "name a port of the rules, or add to `cables`"
                )
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

    def _make_error(self, path: str, problem: str, fix: str) -> AssayError:
        key = f"FabricDesign/{self._design.name}"
        return AssayError(problem, where=self._fleet.lines.get((key, path), f"{key} {path}"), fix=fix)


def _list_used_ports(guids: list[str], links: Iterable[tuple[int, int, int, int]]) -> set[PortId]:
    return {PortId(guids[n], p) for a, a_port, b, b_port in links for n, p in ((a, a_port), (b, b_port))}
