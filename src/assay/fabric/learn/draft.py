"""Drafts a FabricDesign as YAML, with `# review:` where a person must decide before the design counts.

`draft_from_discovery` lists every cable of a fabric that is known to be good, by GUID and port. `draft_rules` writes
some lines for a fabric of any size, and a `# review:` for all that breaks them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.lost_switches import MIN_SWITCH_CABLES
from assay.fabric.compare.repair import CablingRepair
from assay.fabric.compare.shared_plugs import LOST_KINDS, MOVED_TITLES
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.boxes import BoxChip, find_box_chips
from assay.fabric.learn.hosts import find_most_frequent, sort_naturally
from assay.fabric.learn.judged_design import JudgedDesign, is_unseen
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.specs.fabric.adapters import HostAdapter
from assay.model.specs.fabric.cable import Cable, CableEnd, DeviceKind
from assay.model.specs.fabric.design_parts import format_node_list
from assay.model.specs.fabric.switches import CoreTier, LeafTier, SpineTier
from assay.model.text.lists import format_count

SCHEMA = "# yaml-language-server: $schema=../schemas/fabric-design.json"
MAX_PORTS = 4096
CABLE_KINDS = {"swap", "moved", "missing"}


@frozen
class DraftDevice:
    """A device to list. Without a GUID it becomes a comment, for a person to complete."""

    guid: str
    name: str
    kind: DeviceKind
    ports: int = 0
    review: str = ""
    node: str = ""
    box: str = ""
    module: str = ""
    plane: int = 0


@frozen
class DraftCable:
    """A cable to list: its ends as `DEVICE/PORT`, and a hint that becomes a comment."""

    a: str
    b: str
    rate: str = ""
    hint: str = ""


@dataclass
class DesignDraft:
    """The draft of a design. `rate` applies to cables without one. `switch` is a switch model as YAML.

    `review` are lines for the person who reviews it. Raises AssayError for a name that no design may have.
    """

    name: str
    description: str
    rate: str
    site: str = ""
    switch: str = ""
    review: list[str] = field(default_factory=list)
    devices: list[DraftDevice] = field(default_factory=list)
    cables: list[DraftCable] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", self.name):
            raise AssayError(
                f"{self.name!r} is no name for a design", fix="use small letters, digits, points and dashes"
            )

    def as_yaml(self) -> str:
        """Return the draft as a YAML document."""
        return "\n".join(self._format_lines()) + "\n"

    def _format_lines(self) -> Iterator[str]:
        yield SCHEMA
        yield from (f"# review: {line}" for line in self.review)
        yield from ("kind: FabricDesign", f"name: {self.name}", f"description: {quote_yaml(self.description)}")
        if self.site:
            yield f"site: {quote_yaml(self.site)}"
        yield f"rate: {self.rate}"
        if self.switch:
            yield f"switch: {self.switch}"
        with_guid = [device for device in self.devices if device.guid]
        without_guid = [device for device in self.devices if not device.guid]
        if with_guid:
            yield "devices:"
            yield from map(format_device, with_guid)
        if without_guid:
            yield "# review: the GUIDs of these are not known; write them, and remove the #"
            yield from ([] if with_guid else ["# devices:"])
            yield from (f"# {format_device(device)}" for device in without_guid)
        yield "cables:"
        yield from map(format_cable, self.cables)


def format_device(device: DraftDevice) -> str:
    """Return a device as an item of a YAML list."""
    fields = [f'guid: "{device.guid or "0x"}"', f"name: {quote_yaml(device.name)}"]
    fields += [f"kind: {device.kind}"] if device.kind != "switch" else []
    fields += [f"ports: {device.ports}"] if device.ports else []
    fields += [f"node: {quote_yaml(device.node)}"] if device.node else []
    fields += [f"box: {quote_yaml(device.box)}"] if device.box else []
    fields += [f"module: {quote_yaml(device.module)}"] if device.module else []
    fields += [f"plane: {device.plane}"] if device.plane else []
    return f"  - {{{', '.join(fields)}}}{f' # review: {device.review}' if device.review else ''}"


def format_cable(cable: DraftCable) -> str:
    """Return a cable as an item of a YAML list."""
    text = f"{cable.a} - {cable.b}{f' {cable.rate}' if cable.rate else ''}"
    return f"  - {text if is_plain_yaml(text) else quote_yaml(text)}{f' # {cable.hint}' if cable.hint else ''}"


def is_plain_yaml(text: str) -> bool:
    """Return whether YAML reads a text as itself without quotes."""
    return text[:1].isalnum() and all(char.isalnum() or char in " _./-" for char in text)


def quote_yaml(text: str) -> str:
    """Return a text as YAML in quotes, without the characters that YAML forbids."""
    return json.dumps(replace_unprintable(text), ensure_ascii=False)


def replace_unprintable(text: str) -> str:
    """Return a text with a question mark for each unprintable character."""
    return "".join(char if char.isprintable() else "?" for char in text)


def draft_from_discovery(
    discovery: FabricDiscovery, name: str, hosts: Mapping[str, HostAdapter], reason: str = ""
) -> DesignDraft:
    """Return the draft of a design with every cable as it was discovered. `reason` says why it has no rules.

    Raises AssayError for a partial discovery: the design would lack for ever what the discovery lacks.
    """
    if discovery.partial:
        more = f" (and {len(discovery.problems) - 1} more)" if len(discovery.problems) > 1 else ""
        raise AssayError(
            f"no design can be drafted from a partial discovery: {discovery.problems[0]}{more}",
            fix="discover again; `assay fabric compare` with any design lists every problem",
        )
    inside = {guid for guid, device in discovery.devices.items() if device.description == AGGREGATION_NODE}
    if discovery.split > 1:
        because_split = f"{reason}; " if reason else ""
        reason = f"{because_split}cages are split in {discovery.split}, and their parts count singly"
    cables = [cable for cable in discovery.cables if not {cable.a.guid, cable.b.guid} & inside]
    rate = find_most_frequent(cable.rate for cable in cables)
    devices = {guid: device for guid, device in discovery.devices.items() if guid not in inside}
    draft = DesignDraft(name, f"Every cable as it was discovered: {len(devices)} devices, {len(cables)} cables", rate)
    draft.devices = make_devices(devices, cables, hosts)
    draft.cables = [make_cable(cable, devices, rate) for cable in cables]
    because = f" ({replace_unprintable(reason)})" if reason else ""
    draft.review = [f"no pattern{because}: this is the cabling as found, right or not", "add racks, units and lengths"]
    if other_rates := sum(1 for cable in draft.cables if cable.rate):
        draft.review.append(f"{format_count(other_rates, 'cable')} with another rate than {rate}: is that intended?")
    return draft


def make_devices(
    devices: dict[str, DiscoveredDevice], cables: list[DiscoveredCable], hosts: Mapping[str, HostAdapter]
) -> list[DraftDevice]:
    """Return the devices, switches first, by name."""
    highest_port: dict[str, int] = {}
    for port in (port for cable in cables for port in (cable.a, cable.b)):
        highest_port[port.guid] = max(highest_port.get(port.guid, 1), port.number)
    if (highest := max(highest_port.values(), default=0)) > MAX_PORTS:
        raise AssayError(f"no device has a port {highest}", fix="discover again")
    announced, chips = Counter(device.name for device in devices.values()), find_box_chips(devices, cables)
    alone = BoxChip("", "", 0, "")
    names = {
        guid: chips[guid].name if guid in chips and announced[device.name] > 1 else device.name
        for guid, device in devices.items()
    }
    count = Counter(names.values())
    order = sorted(devices, key=lambda guid: (devices[guid].kind == "hca", sort_naturally(devices[guid].name), guid))
    drafts = []
    for guid in order:
        device = devices[guid]
        chip = chips.get(guid, alone)
        times = count[names[guid]]
        draft = DraftDevice(
            guid,
            names[guid],
            device.kind,
            min(max(device.ports, highest_port.get(guid, 1)), MAX_PORTS),
            review=f"{times} devices announce this name" if times > 1 else "",
            node=hosts[guid].host if guid in hosts else "",
            box=chip.box,
            module=chip.module,
            plane=chip.plane,
        )
        drafts.append(draft)
    return drafts


def make_cable(cable: DiscoveredCable, devices: dict[str, DiscoveredDevice], rate: str) -> DraftCable:
    """Return a discovered cable as a draft, with the names of its ends as a hint."""
    a, b = (f"{port.guid}/{port.number}" for port in (cable.a, cable.b))
    hint = " – ".join(
        replace_unprintable(devices[port.guid].name) for port in (cable.a, cable.b) if port.guid in devices
    )
    other_rate = cable.rate if cable.rate != rate else ""
    return DraftCable(a, b, other_rate, hint=f"{hint}{f'; review: most run at {rate}' if other_rate else ''}")


class _Shift(NamedTuple):
    """A node in another port of the right leaf: the port of the pattern, and the one where it is."""

    node: str
    designed: int
    seen: int


def describe_exceptions(judged: JudgedDesign) -> Iterator[str]:
    """Yield a line for each exception.

    All adapters of a node that are in another port in the same way have one line; so have many cables that are down or
    slow for one reason, such as all of a leaf, and the links of all planes of a cable that is in another place.
    """
    exceptions = judged.exceptions
    repairs: list[CablingRepair] = []
    for kinds in (LOST_KINDS, MOVED_TITLES, ("device-missing",)):
        repairs += group_by_common_cause(discrepancy for discrepancy in exceptions if discrepancy.kind in kinds)
    together = {
        id(discrepancy): repair for repair in repairs if _is_told_at_once(repair) for discrepancy in repair.members
    }
    shifts = [(discrepancy, _find_shift(discrepancy)) for discrepancy in exceptions]
    left = Counter(shift for _, shift in shifts if shift)
    for discrepancy, shift in shifts:
        if repair := together.get(id(discrepancy)):
            if repair.first is discrepancy:
                yield _describe_repair(repair)
        elif shift is None:
            yield f"{discrepancy.kind}: {discrepancy.summary}{_describe_others(judged, discrepancy)}"
        elif left[shift] == 1:
            yield f"{discrepancy.kind}: {discrepancy.summary}"
        elif many := left.pop(shift, 0):
            where = f"port {shift.seen} instead of port {shift.designed} of {many} leaves"
            yield f"moved: {shift.node} is in {where}, out of the order of the names: is that intended?"


def _is_told_at_once(repair: CablingRepair) -> bool:
    """Return whether the members of a repair are one line: a bundle, a box, the planes of a cable, many lost cables."""
    if len(repair.members) == 1:
        return False
    many = repair.first.kind in LOST_KINDS and len(repair.members) >= MIN_SWITCH_CABLES
    in_boxes = all(member.box or any(end.plane for end in member.ends) for member in repair.members)
    return many or in_boxes or repair.cause.startswith(("bundle/", "trunk/"))


def _describe_repair(repair: CablingRepair) -> str:
    """Return a line for what has one reason: with the first cable in another place, and the rates of slow ones."""
    if repair.first.kind in MOVED_TITLES:
        return f"{repair.first.kind}: {repair.title}: {repair.first.summary}"
    pairs = [pair for member in repair.members for pair in member.cables]
    rates = {(pair.observed.rate, pair.expected.rate) for pair in pairs if pair.observed and pair.expected}
    slow = ", ".join(f"at {seen} instead of {designed}" for seen, designed in sorted(rates))
    return f"{repair.first.kind}: {repair.title}{f' {slow}' if slow else ''}: {repair.likely_cause}"


def _find_shift(discrepancy: CablingDiscrepancy) -> _Shift | None:
    """Return how an adapter is in another port of the leaf of the pattern, None if it is not, or on another one."""
    if discrepancy.kind != "moved" or len(discrepancy.cables) != 1:
        return None
    expected, observed = discrepancy.cables[0].expected, discrepancy.cables[0].observed
    if expected is None or observed is None:
        return None
    (adapter, leaf), (seen_adapter, seen_leaf) = _sort_ends(expected), _sort_ends(observed)
    if not adapter.node or (adapter.guid, leaf.guid) != (seen_adapter.guid, seen_leaf.guid):
        return None
    return _Shift(adapter.node, leaf.port, seen_leaf.port)


def _sort_ends(cable: Cable) -> list[CableEnd]:
    """Return the end at a node before the one at a switch."""
    return sorted(cable.ends, key=lambda end: not end.node)


def _describe_others(judged: JudgedDesign, discrepancy: CablingDiscrepancy) -> str:
    """Return how many nodes have the adapter on the leaf where this one lacks it."""
    expected = next((pair.expected for pair in discrepancy.cables if pair.expected), None)
    if expected is None or discrepancy.kind not in CABLE_KINDS:
        return ""
    adapter, switch = _sort_ends(expected)
    if not adapter.node or switch.node:
        return ""
    slot = adapter.device.partition(" ")[2]
    wrong: set[str] = set()
    for other in (other for other in judged.exceptions if other.kind in CABLE_KINDS):
        for cable in (pair.expected for pair in other.cables if pair.expected):
            wrong |= {end.node for end in cable.ends} if switch.guid in (cable.a.guid, cable.b.guid) else set()
    others = [
        row
        for row in judged.topology.rows[switch.guid[2:]]
        if (device := judged.topology.devices[f"0x{row[1]}"]).node and device.node not in wrong
    ]
    return f" ({len(others)} nodes here have {slot or 'this rail'} on {switch.device}, this one has not)"


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
    split = f", split: {model.split}" if model.split > 1 else ""
    ports = f"ports: {model.ports}{split}"
    yield f"switch: {{product: {quote_yaml(model.product)}, {ports}}} # review: how are ports labelled?"
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
    for name, value in tier.model_dump(exclude={"at"}, exclude_defaults=True).items():
        yield f"  {name}: {quote_yaml(value) if isinstance(value, str) else value}"
    yield "  at:"
    for switch in tier.at:
        name = f"name: {quote_yaml(switch.name)}, " if switch.name else ""
        box = f", box: {quote_yaml(switch.box)}" if switch.box else ""
        box += f", module: {quote_yaml(switch.module)}" if switch.module else ""
        box += "".join(f", {side}: {quote_yaml(ports)}" for side in ("down", "up") if (ports := getattr(switch, side)))
        planes = f", other_planes: {json.dumps(switch.other_planes)}" if switch.other_planes else ""
        unseen = sum(map(is_unseen, [switch.guid, *switch.other_planes]))
        unknown = f"{unseen} of its chips; write their GUIDs" if switch.other_planes else "it; write its GUID"
        review = f" # review: nobody saw {unknown}" if unseen else ""
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
