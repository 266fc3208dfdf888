"""Gives the devices of an Ethernet fabric, which LLDP knows by MACs or names, the identities that a design gives them.

A design knows an adapter by the GUID that its driver made of its MAC, or by the MAC itself; a switch by its MAC. A
switch of which only the name is known is the one with that name in the design. Of an adapter of which only names are
known (`n0001 ens1f0np0`), the cables of most nodes tell the rail. Links between two devices that the design lacks are
of another network, such as that for management, and are left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from assay.fabric.compare.device_names import AnnouncedNames
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import FabricDiscovery, LocalProblem
from assay.fabric.lazy_discovery import DeviceHead, PortRow, PortRows
from assay.fabric.readers.lldp import NAMED, LldpDiscovery
from assay.model.specs.fabric.cable import PortId, read_mac

UNDESIGNED_PORTS = 1000
"""Parts of a cage that the design does not split are numbered from here on."""
Owner = tuple[str, int]
"""The designed device that a device is, as 16 hex digits, and what is added to the number of its port."""


def resolve_named_devices(topology: CompiledTopology, discovery: FabricDiscovery) -> FabricDiscovery:
    """Return the discovery with each device of the design under its GUID there."""
    if not isinstance(discovery, LldpDiscovery):
        return discovery
    owners = _find_owners(topology, discovery)
    split = next((device.labels.split for device in topology if device.labels), discovery.split)
    rows, left_out = _rename_rows(topology, discovery, owners, split)
    heads: dict[str, DeviceHead] = {}
    for digits, head in discovery.heads.items():
        owner = owners.get(digits, (digits, 0))[0]
        if owner in rows:
            heads.setdefault(owner, head)
    return LldpDiscovery(
        heads,
        rows if discovery.tells_rates else _fill_rates(rows, topology.rows),
        problems=list(_rename_problems(discovery, owners)),
        notes=(*discovery.notes, *([f"{left_out} links of other networks were left out"] if left_out else [])),
        split=split,
        tells_rates=True,
    )


def _find_owners(topology: CompiledTopology, discovery: LldpDiscovery) -> Mapping[str, Owner]:
    """Return the designed device that each device is, where its identity is another one there."""
    of_mac: dict[str, Owner] = {}
    for device in topology:
        mac = read_mac(device.guid)
        for port in range(device.ports if mac and device.kind == "hca" else 0, 1, -1):
            of_mac.setdefault(f"0000{int(mac, 16) + port - 1:012x}", (device.guid[2:], port - 1))
        if mac:
            of_mac[f"0000{mac}"] = device.guid[2:], 0
    owners = {digits: of_mac[digits] for digits in discovery.heads if digits in of_mac}
    named = [digits for digits in discovery.heads if digits.startswith(NAMED)]
    if named:
        taken = {owner for owner, _ in owners.values()}
        names = AnnouncedNames(topology, discovery.devices)
        switches = [f"0x{digits}" for digits in named if discovery.heads[digits][0] == "switch"]
        owners |= {guid[2:]: (owner[2:], 0) for guid, owner in names.find_claims(switches).items()}
        claims = _find_rails(topology, discovery, owners, names)
        owners |= {digits: owner for digits, owner in claims.items() if owner[0] not in taken}
    return {digits: owner for digits, owner in owners.items() if owner != (digits, 0)}


NamedPorts = Mapping[str, Mapping[str, str]]
"""Each node's adapters of which only names are known: the identity that each has, by the name of its port."""


def _find_rails(
    topology: CompiledTopology, discovery: LldpDiscovery, owners: Mapping[str, Owner], names: AnnouncedNames
) -> dict[str, Owner]:
    """Return the designed adapter of each adapter known by names. Nodes with the same names use them for the same."""
    adapters_of: dict[str, list[str]] = defaultdict(list)
    for device in topology:
        if device.node:
            adapters_of[device.node].append(device.guid[2:])
    ports_of: dict[str, dict[str, str]] = defaultdict(dict)
    for digits, (kind, _, description, _) in discovery.heads.items():
        if kind == "hca" and digits.startswith(NAMED) and (node := names.find_node(description)):
            ports_of[node][description.partition(" ")[2]] = digits
    place_of = {digits: place for adapters in adapters_of.values() for place, digits in enumerate(adapters)}
    votes: dict[tuple[frozenset[str], str], Counter[int]] = defaultdict(Counter)
    for ports, port, leaf_port in _list_leaf_ports(discovery, owners, ports_of):
        designed = topology.peer_ports.get(leaf_port)
        if designed and designed.guid[2:] in place_of:
            votes[ports, port][place_of[designed.guid[2:]]] += 1
    claims = {
        digits: (adapters_of[node][votes[frozenset(ports), port].most_common(1)[0][0]], 0)
        for node, ports in ports_of.items()
        for port, digits in ports.items()
        if votes[frozenset(ports), port]
    }
    times = Counter(claims.values())
    return {digits: owner for digits, owner in claims.items() if times[owner] == 1}


def _list_leaf_ports(
    discovery: LldpDiscovery, owners: Mapping[str, Owner], ports_of: NamedPorts
) -> Iterator[tuple[frozenset[str], str, PortId]]:
    """Yield the names of all ports of a node, the name of one, and the port that it leads to."""
    for ports in ports_of.values():
        for port, digits in ports.items():
            for _, far, far_port, _ in discovery.rows[digits]:
                yield frozenset(ports), port, PortId(f"0x{owners.get(far, (far, 0))[0]}", int(far_port))


def _rename_rows(
    topology: CompiledTopology, discovery: LldpDiscovery, owners: Mapping[str, Owner], split: int
) -> tuple[PortRows, int]:
    """Return the rows with the design's identities and port numbers, and how many links between others it lacks."""
    renumbered = {
        digits for digits, head in discovery.heads.items() if head[0] == "switch" and discovery.split not in (0, split)
    }

    def resolve(digits: str, port: str) -> tuple[str, str]:
        owner, added = owners.get(digits, (digits, 0))
        if digits in renumbered:
            cage, part = divmod(int(port) - 1, discovery.split)
            return owner, str(cage * split + part + 1 if part < split else UNDESIGNED_PORTS + int(port))
        return owner, str(int(port) + added) if added else port

    designed = topology.rows
    rows: dict[str, list[PortRow]] = {}
    left_out = 0
    for digits, own in discovery.rows.items():
        for port, far, far_port, rate in own:
            here, number = resolve(digits, port)
            there, far_number = resolve(far, far_port)
            if here in designed or there in designed:
                rows.setdefault(here, []).append((number, there, far_number, rate))
            else:
                left_out += 1
    if renumbered or owners:
        for device_rows in rows.values():
            if len(device_rows) > 1:
                device_rows.sort(key=lambda row: int(row[0]))
    return rows, left_out // 2


def _fill_rates(rows: PortRows, designed: PortRows) -> PortRows:
    """Return the rows with the designed rates: a discovery that tells no speeds says nothing against them."""
    rate_of = {(digits, row[0]): row[3] for digits, own in designed.items() for row in own}
    usual = next(iter(rate_of.values()), "")
    return {
        digits: [(*row[:3], rate_of.get((digits, row[0]), rate_of.get((row[1], row[2]), usual))) for row in own]
        for digits, own in rows.items()
    }


def _rename_problems(discovery: LldpDiscovery, owners: Mapping[str, Owner]) -> Iterator[str]:
    for problem in discovery.stderr_problems:
        if isinstance(problem, LocalProblem):
            owned = (owners.get(guid[2:], (guid[2:], 0))[0] for guid in problem.devices)
            yield LocalProblem(problem, *(f"0x{digits}" for digits in owned))
        else:
            yield problem
