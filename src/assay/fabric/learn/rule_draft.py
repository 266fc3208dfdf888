"""Drafts a FabricDesign as rules: some lines for a fabric of any size, and a `# review:` for all that breaks them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from assay.fabric.discovery import DiscoveredCable, FabricDiscovery
from assay.fabric.learn.design_draft import SCHEMA, format_cable, format_device, make_cable, make_devices, quote_yaml
from assay.fabric.learn.judged_design import JudgedDesign, is_unseen
from assay.fabric.learn.pattern_exceptions import describe_exceptions
from assay.model.specs.fabric.design_cables_and_partitions import format_node_list
from assay.model.specs.fabric.switch_settings import CoreTier, LeafTier, SpineTier
from assay.model.text.text_lists import format_count


def draft_rules(judged: JudgedDesign, discovery: FabricDiscovery, inventory: Collection[str] = ()) -> str:
    """Return the draft as a YAML document.

    It names the adapters of each node that the `inventory` does not have, or of which it has others.
    """
    return "\n".join(_format_lines(judged, discovery, inventory)) + "\n"


def draft_inventory(judged: JudgedDesign) -> str:
    """Return the nodes with the GUIDs of their adapters, as a part of an inventory."""
    lines = ["# review: racks, units, serial numbers and BMCs are not known from the fabric", "hosts:"]
    for name, guids in judged.nodes.items():
        known = ", ".join(f'"{guid}"' for guid in guids)
        lines.append(f"  {quote_yaml(name)}: {{hca_guids: [{known}]}}")
        lines += [f"  # review: nobody saw {sum(map(is_unseen, guids))} of its adapters"] * any(map(is_unseen, guids))
    return "\n".join(lines) + "\n"


def _format_lines(judged: JudgedDesign, discovery: FabricDiscovery, inventory: Collection[str]) -> Iterator[str]:
    design = judged.design
    yield SCHEMA
    yield from (f"# review: {' '.join(line.split())}" for line in _list_exceptions(judged))
    yield from ("kind: FabricDesign", f"name: {design.name}", f"nodes: {format_node_list(design.nodes)}")
    if design.gaps:
        yield f"gaps: {format_node_list(design.gaps)}"
    yield f"rails: {design.rails}"
    yield from [f"planes: {design.planes}"] if design.planes > 1 else []
    yield from [f"adapter_ports: {json.dumps(design.adapter_ports)}"] if design.adapter_ports else []
    yield f"rate: {design.rate}"
    if rates := design.rates.model_dump(exclude_none=True):
        listed = ", ".join(f"{cables}: {rate}" for cables, rate in rates.items())
        yield f"rates: {{{listed}}} # review: is that intended?"
    if design.oversubscription > 1:
        yield f"oversubscription: {design.oversubscription:g} # review: is that intended?"
    yield from _format_adapters(judged, inventory)
    model = design.switch
    assert model is not None, "the rules name a switch model"
    yield f"switch: {{product: {quote_yaml(model.product)}, ports: {model.ports}}} # review: how are ports labelled?"
    for name, tier in design.tiers:
        yield f"{name}: # review: racks and units"
        yield from _format_tier(tier)
    between_planes = (cable for cable in discovery.cables if judged.topology.joins_planes(cable.a.guid, cable.b.guid))
    if beside := [*judged.list_cables_beside(), *between_planes]:
        yield from _format_beside(judged, discovery, beside)


def _list_exceptions(judged: JudgedDesign) -> Iterator[str]:
    """Yield how many cables follow the pattern, then what breaks it."""
    matching, expected = judged.comparison.matching, judged.comparison.expected
    exceptions = list(describe_exceptions(judged))
    yield f"{matching} of {expected} cables follow the pattern, {format_count(len(exceptions), 'exception')}"
    yield from judged.notes
    yield from exceptions


def _format_adapters(judged: JudgedDesign, inventory: Collection[str]) -> Iterator[str]:
    """Yield the adapters of the nodes that the inventory does not have."""
    yield f"adapter_names: [{', '.join(map(quote_yaml, judged.design.adapter_names))}]"
    known = set(inventory) - judged.contradicted
    unlisted = {name: guids for name, guids in judged.nodes.items() if name not in known}
    if unlisted:
        yield "adapters: # of nodes that are not in the inventory"
    for name, guids in unlisted.items():
        unseen = sum(map(is_unseen, guids))
        review = f" # review: nobody saw {unseen} of them" if unseen else ""
        yield f"  {quote_yaml(name)}: [{', '.join(map(quote_yaml, guids))}]{review}"


def _format_tier(tier: LeafTier | SpineTier | CoreTier) -> Iterator[str]:
    for field, value in tier.model_dump(exclude={"at"}, exclude_defaults=True).items():
        yield f"  {field}: {quote_yaml(value) if isinstance(value, str) else value}"
    yield "  at:"
    for switch in tier.at:
        name = f"name: {quote_yaml(switch.name)}, " if switch.name else ""
        box = f", box: {quote_yaml(switch.box)}" if switch.box else ""
        box += f", module: {quote_yaml(switch.module)}" if switch.module else ""
        planes = f", other_planes: {json.dumps(switch.other_planes)}" if switch.other_planes else ""
        unseen = sum(map(is_unseen, [switch.guid, *switch.other_planes]))
        what = f"{unseen} of its chips; write their GUIDs" if switch.other_planes else "it; write its GUID"
        review = f" # review: nobody saw {what}" if unseen else ""
        place = f"rack: {quote_yaml(switch.rack)}, u: {switch.u}"
        yield f'    - {{guid: "{switch.guid}"{planes}, {name}{place}{box}}}{review}'


def _format_beside(judged: JudgedDesign, discovery: FabricDiscovery, cables: list[DiscoveredCable]) -> Iterator[str]:
    names = {port.guid for cable in cables for port in cable[:2]} - judged.topology.devices.keys()
    devices = {guid: discovery.devices[guid] for guid in names if guid in discovery.devices}
    if devices:
        yield "devices: # beside the rules"
    yield from map(format_device, make_devices(devices, cables, judged.hosts))
    yield "cables:"
    yield from (format_cable(make_cable(cable, dict(discovery.devices), judged.design.rate)) for cable in cables)
