"""How far each device is from the nodes, and what the fabric lacks while one of its switches is out.

Which links go down with a plug that is pulled: two ports of a switch may share a cage, and then a transceiver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from assay.fabric.comparison.discrepancy import CablingDiscrepancy
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import Cable, PortId

PLUG_PULLING_KINDS = {"swap", "moved", "missing", "degraded", "unexpected"}
"""Kinds of which plugs are pulled to mend them."""


def find_links_sharing_transceiver(plan: CompiledTopology, one: CablingDiscrepancy) -> tuple[str, ...]:
    """Say of every other cable in the same cages where it ends, and whose traffic it carries."""
    if one.kind not in PLUG_PULLING_KINDS:
        return ()
    own = {end.port_id for end in one.ends}
    found = (plan.cable_at(port) for port in _ports_sharing_cages(plan, one) if port not in own)
    return tuple(dict.fromkeys(f"{cable.a}: {_describe_traffic(plan, cable)}" for cable in found if cable))


def _describe_traffic(plan: CompiledTopology, cable: Cable) -> str:
    node = next((end for end in cable.ends if end.node), None)
    if node is None:
        return f"the traffic between {cable.a.device} and {cable.b.device}"
    rails = [end.port_id for own in plan.cables_of_node(node.node) for end in own.ends if end.node == node.node]
    return f"rail {rails.index(node.port_id)} of {node.node}"


def _ports_sharing_cages(plan: CompiledTopology, one: CablingDiscrepancy) -> Iterator[PortId]:
    for end in one.ends:
        if device := plan.devices.get(end.guid):
            yield from (PortId(end.guid, number) for number in device.ports_sharing_plug(end.port))


def find_device_tiers(plan: CompiledTopology) -> dict[str, int]:
    """Return 0 for adapters, 1 for switches that adapters are cabled to, 2 for those above them, and so on."""
    found = {guid: 0 for guid, device in plan.devices.items() if device.kind == "hca"}
    front, level = list(found), 0
    while front:
        level += 1
        far = {f"0x{row[1]}" for guid in front for row in plan.rows[guid[2:]]} - found.keys()
        found |= dict.fromkeys(far, level)
        front = list(far)
    return found


def describe_capacity_loss(plan: CompiledTopology, switch: str, level: Mapping[str, int]) -> str:
    """Say in one line what the devices below a switch lose with it."""
    here = level.get(switch, 0)
    below = Counter(f"0x{row[1]}" for row in plan.rows[switch[2:]] if level.get(f"0x{row[1]}", 0) < here)
    if here == 1:
        return _of_nodes(plan, below)
    said: Counter[tuple[int, int]] = Counter()
    for guid, lost in below.items():
        up = sum(level.get(f"0x{row[1]}", 0) > level[guid] for row in plan.rows[guid[2:]])
        said[lost, up] += 1
    return "; ".join(
        f"{_count(many, 'switch', 'switches')} below it {'is' if many == 1 else 'are'} left with {up - lost} of {up}"
        f" cables up ({(up - lost) / up:.0%} of the bandwidth)"
        for (lost, up), many in sorted(said.items(), reverse=True)
    )


def _of_nodes(plan: CompiledTopology, below: Mapping[str, int]) -> str:
    """Say it of nodes: an adapter alone is none of its own."""
    lost: Counter[str] = Counter()
    for guid, cables in below.items():
        lost[plan.devices[guid].node or guid] += cables
    said: Counter[tuple[int, int]] = Counter()
    for unit, cables in lost.items():
        own = plan.cables_of_node(unit) if unit not in plan.devices else plan.cables_of_device(unit)
        said[cables, len(own)] += 1
    return "; ".join(
        f"{_count(many, 'node', 'nodes')} {'is' if many == 1 else 'are'} left with {links - gone} of {links} links"
        for (gone, links), many in sorted(said.items(), reverse=True)
    )


def _count(many: int, one: str, more: str) -> str:
    return f"{many} {one if many == 1 else more}"
