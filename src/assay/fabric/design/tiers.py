"""What goes down together: the tier of each device, the capacity lost with a switch, links that share a transceiver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.model.specs.fabric.cable import Cable

PLUG_PULLING_KINDS = {"swap", "moved", "missing", "degraded", "unexpected"}
"""The kinds of discrepancy whose repair pulls plugs."""


def find_links_sharing_transceiver(topology: CompiledTopology, discrepancy: CablingDiscrepancy) -> tuple[str, ...]:
    """Return, in words, each other link that goes down when the discrepancy's plugs are pulled, with its traffic.

    Two ports of a switch may share a cage, and then a transceiver.
    """
    if discrepancy.kind not in PLUG_PULLING_KINDS:
        return ()
    own = {end.port_id for end in discrepancy.ends}
    designed = [end.port_id for end in discrepancy.ends if end.guid in topology.devices]
    ports = (port for end in designed for port in topology.list_ports_sharing_plug(end) if port not in own)
    cables = map(topology.cable_at, ports)
    return tuple(dict.fromkeys(f"{cable.a}: {_describe_traffic(topology, cable)}" for cable in cables if cable))


def _describe_traffic(topology: CompiledTopology, cable: Cable) -> str:
    adapter = next((end for end in cable.ends if end.node), None)
    if adapter is None:
        return f"the traffic between {cable.a.device} and {cable.b.device}"
    own = {end.guid: None for cable in topology.cables_of_node(adapter.node) for end in cable.ends if end.node}
    return f"rail {list(own).index(adapter.guid)} of {adapter.node}"


def find_device_tiers(topology: CompiledTopology) -> dict[str, int]:
    """Return the tier of each device by GUID: 0 for adapters, 1 for their switches, 2 for those above, and so on."""
    tiers = {guid: 0 for guid, device in topology.devices.items() if device.kind == "hca"}
    front, tier = list(tiers), 0
    while front:
        tier += 1
        above = {f"0x{row[1]}" for guid in front for row in topology.rows[guid[2:]]} - tiers.keys()
        tiers |= dict.fromkeys(above, tier)
        front = list(above)
    return tiers


def describe_capacity_loss(topology: CompiledTopology, switches: Collection[str], tiers: Mapping[str, int]) -> str:
    """Return in one line what the devices below switches lose with them, "" if nothing is below them.

    `switches` are GUIDs: one, or the chips of a box or plane. `tiers` come from `find_device_tiers`. The chips of a box
    below count as one switch; those of a box that is partly lost count one by one.
    """
    tier = min((tiers.get(guid, 0) for guid in switches), default=0)
    cables_lost = Counter(
        far
        for guid in switches
        for row in topology.rows[guid[2:]]
        if tiers.get(far := f"0x{row[1]}", 0) < tiers.get(guid, 0) and far not in switches
    )
    if tier == 1:
        return _describe_node_loss(topology, cables_lost)
    hurt = {topology.devices[guid].box for guid in switches}
    boxes = {guid: box if (box := topology.devices[guid].box) not in hurt else "" for guid in cables_lost}
    lost_by_switch: Counter[str] = Counter()
    for guid, lost in cables_lost.items():
        lost_by_switch[boxes[guid] or guid] += lost
    below: Counter[tuple[int, int]] = Counter()
    for name, lost in lost_by_switch.items():
        chips = [chip.guid for chip in topology.chips_of_box[name]] if name in topology.chips_of_box else [name]
        uplinks = sum(
            tiers.get(f"0x{row[1]}", 0) > tiers.get(chip, 0) for chip in chips for row in topology.rows[chip[2:]]
        )
        below[lost, uplinks] += 1
    return "; ".join(
        f"{count} {'switch' if count == 1 else 'switches'} below it {'is' if count == 1 else 'are'} left with"
        f" {uplinks - lost} of {uplinks} cables up ({(uplinks - lost) / uplinks:.0%} of the bandwidth)"
        for (lost, uplinks), count in sorted(below.items(), reverse=True)
    )


def _describe_node_loss(topology: CompiledTopology, cables_lost: Mapping[str, int]) -> str:
    """Describe the loss by node. An adapter without a node counts for itself."""
    lost_by_unit: Counter[str] = Counter()
    for guid, cables in cables_lost.items():
        lost_by_unit[topology.devices[guid].node or guid] += cables
    units: Counter[tuple[int, int]] = Counter()
    for unit, lost in lost_by_unit.items():
        is_adapter = unit in topology.devices
        links = topology.cables_of_device(unit) if is_adapter else topology.cables_of_node(unit)
        units[lost, len(links)] += 1
    return "; ".join(
        f"{count} {'node is' if count == 1 else 'nodes are'} left with {links - lost} of {links} links"
        for (lost, links), count in sorted(units.items(), reverse=True)
    )
