"""Groups discrepancies that have one common cause into repairs, and ranks these by what they cost.

A transceiver, a rack without power, a bundle of cables, a moved node, a switch: one cause is one piece of work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.lost_switches import (
    LOST,
    MIN_SWITCH_CABLES,
    find_common_kind,
    merge_lost_switches,
    merge_many_plugs,
)
from assay.fabric.compare.repair import CablingRepair, group_by_key, measure_cost
from assay.fabric.compare.shared_plugs import (
    LOST_KINDS,
    LOST_TITLES,
    LOST_WORDS,
    PlaneLinks,
    merge_lost_plugs,
    merge_moved_plugs,
)
from assay.model.specs.fabric.switches import UNKNOWN_RACK

MIN_RACK_DEVICES = 3
"""Our own choice: from so many missing devices in a rack on, there is one common cause."""
MIN_UNIT_NODES = 4
"""The same, for nodes without a known rack below one switch."""
MIN_BUNDLE_SWAPS = 3
MAX_SWAPPED = 4
"""The same, for swaps between the same two to four switches."""

ADAPTER_OF_HOST = re.compile(r"(?P<host>\S+)(?:[ :/](?=\S*\d)[\w-]+|[-.]ib\d+)")
"""How adapters name their host, for grouping only. What a host is called is in `specs/adapter-names/`."""


def group_by_common_cause(discrepancies: Iterable[CablingDiscrepancy]) -> list[CablingRepair]:
    """Return the repairs, each discrepancy in exactly one: what costs most nodes and bandwidth first."""
    every, repairs = list(discrepancies), list[CablingRepair]()
    order = {id(discrepancy): number for number, discrepancy in enumerate(every)}
    links = PlaneLinks(every)
    remaining = links.cables
    for merge in MERGES:
        used: set[int] = set()
        for repair in merge(remaining):
            members = {id(member) for member in repair.members}
            if not members & used:  # a cable between two cages has one ticket
                used |= members
                repairs.append(repair)
        remaining = [discrepancy for discrepancy in remaining if id(discrepancy) not in used]
    repairs += [CablingRepair((discrepancy,)) for discrepancy in remaining]
    repairs = list(map(links.unfold, repairs))
    return sorted(repairs, key=lambda repair: (*measure_cost(repair.members).rank, order[id(repair.first)]))


def _merge_lost_boxes(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several chips of one box missing: the card or plane that they are on, or the whole box."""
    for where, names, members in _group_chips(discrepancies, "device-missing"):
        yield CablingRepair(
            members,
            f"box/{where}",
            f"{where}: {len(members)} chips not in the fabric",
            f"{names} are chips of {where}: its power, or the card itself",
        )


def _merge_renewed_boxes(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several chips of one box have new GUIDs: somebody replaced the card that they are on, or the whole box."""
    for where, names, members in _group_chips(discrepancies, "device-replaced"):
        yield CablingRepair(
            members,
            f"renewed/{where}",
            f"{where}: {len(members)} chips with new GUIDs",
            f"{names} are chips of {where}, which was replaced",
        )


def _merge_links_in_boxes(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several links inside one box are down: one card of it."""
    for (box,), members in group_by_key(discrepancies, "missing", _list_own_box):
        if len(members) > 1:
            yield CablingRepair(
                members,
                f"inside/{box}",
                f"{box}: {len(members)} links inside it are down",
                f"the links run inside {box}: one of its cards is not seated, or broken",
            )


def _merge_planes(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """The chips of one plane missing in several boxes: what the plane has in common, such as its subnet manager."""
    for (plane,), members in group_by_key(
        discrepancies, "device-missing", lambda each: [(str(each.plane),)] if each.plane else []
    ):
        if len(members) > 1:
            yield CablingRepair(
                members,
                f"plane/{plane}",
                f"Plane {plane}: {len(members)} chips not in the fabric",
                f"these chips carry plane {plane} of their boxes, whose other planes work: its subnet manager first",
            )


def _merge_racks(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several missing devices of one rack: the rack has no power."""
    for (site, rack), members in group_by_key(discrepancies, "device-missing", _list_own_rack):
        if rack and not rack.startswith(UNKNOWN_RACK) and len(members) >= MIN_RACK_DEVICES:
            names = ", ".join(member.device for member in members)
            yield CablingRepair(
                members,
                f"rack/{site}/{rack}",
                f"Rack {rack}: {len(members)} devices not in the fabric",
                f"{names} stand in rack {rack}: its power, or what they have in common there",
            )


def _merge_units(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Many missing nodes below one switch, none with a known rack: nobody knows yet what they have in common."""
    rackless = [node for node in discrepancies if not any(rack for _, rack in _list_own_rack(node))]
    groups = group_by_key(
        rackless, "device-missing", lambda node: _list_devices(node, of_nodes=False) if node.nodes else []
    )
    for (switch, guid), members in sorted(groups, key=lambda group: -len(group[1])):
        if len(members) >= MIN_UNIT_NODES:
            names = ", ".join(member.device for member in members)
            yield CablingRepair(
                members,
                f"unit/{guid}",
                f"{len(members)} nodes below {switch} not in the fabric",
                f"{names} are cabled to {switch}, and the inventory names no rack of theirs: look for what they have in"
                " common, such as a rack or a power feed",
            )


def _merge_disabled_ports(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several disabled ports of one node or switch: somebody disabled them for one reason."""
    groups = list(
        group_by_key(discrepancies, "disabled", lambda each: [(end.node or end.device,) for end in each.ends])
    )
    done: set[int] = set()
    for (unit,), members in sorted(groups, key=lambda group: -len(group[1])):
        new = tuple(member for member in members if id(member) not in done)
        if len(new) > 1:
            done |= {id(member) for member in new}
            yield CablingRepair(
                new, f"disabled/{unit}", f"Disabled: {len(new)} links of {unit}", "somebody disabled them"
            )


def _merge_bundles(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several swaps between the same switches: a bundle of cables is exchanged, or all cables of two switches."""
    for devices, members in _group_largest_first(discrepancies, "swap", _list_swapped_switches):
        if len(members) >= MIN_BUNDLE_SWAPS or (len(devices) == MAX_SWAPPED and _is_bundle(members)):
            names = " and ".join(devices)
            yield CablingRepair(
                members,
                f"bundle/{'/'.join(devices)}",
                f"Exchanged cables: {len(members)} pairs between {names}",
                f"a bundle of cables of {names} was exchanged",
            )


def _merge_trunks(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """All cables between two switches are down or slow, and no others of these switches: the bundle."""
    lost = [link for link in discrepancies if link.kind in LOST_KINDS and link.cables[0].expected]
    members_of: dict[tuple[str, ...], list[CablingDiscrepancy]] = {}
    count = Counter(end.guid for link in lost for end in link.ends[:2])
    for link in lost:
        if link.bundle > 1 and not link.box:
            members_of.setdefault(tuple(end.guid for end in link.ends[:2]), []).append(link)
    for guids, members in members_of.items():
        if all(count[guid] == len(members) == members[0].bundle for guid in guids):
            kind, names = find_common_kind(members), " and ".join(end.device for end in members[0].ends[:2])
            yield CablingRepair(
                tuple(members),
                f"trunk/{'/'.join(guids)}",
                f"{LOST_TITLES[kind]}: all {len(members)} cables between {names}",
                f"all cables between {names} are {LOST_WORDS[kind]}: what they have in common, such as a panel",
            )


def _merge_moved_nodes(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several plugs of the same nodes in wrong ports: they were moved or exchanged, or cabled by another list."""
    members_of: dict[tuple[str, ...], list[CablingDiscrepancy]] = {}
    for discrepancy in discrepancies:
        if discrepancy.kind in ("moved", "swap") and discrepancy.nodes:
            members_of.setdefault(discrepancy.nodes, []).append(discrepancy)
    for nodes, members in members_of.items():
        if len(members) > 1:
            plugs = sum(bool(pair.observed and pair.expected) for member in members for pair in member.cables)
            names, many = " and ".join(nodes), len(nodes) > 1
            yield CablingRepair(
                tuple(members),
                f"moved/{'/'.join(nodes)}",
                f"Node{'s' if many else ''} in other ports: {names}, {plugs} plugs",
                f"{names} {'were moved or exchanged, or were' if many else 'was moved, or was'} cabled by another list",
            )


def _merge_exchanged_adapters(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several adapters of the same nodes in each other's place: somebody who worked on the nodes exchanged them."""
    for nodes, members in group_by_key(
        discrepancies, "device-exchanged", lambda each: [each.nodes] if each.nodes else []
    ):
        if len(members) > 1:
            names = " and ".join(nodes)
            yield CablingRepair(
                members,
                f"exchanged/{'/'.join(nodes)}",
                f"Adapters in each other's nodes: {names}, {len(members)} pairs",
                f"adapters of {names} were exchanged, or their entries in the inventory are",
            )


def _merge_new_hosts(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several adapters that the design lacks and that name the same host: one new node. No two have the same name."""
    for (host,), members in group_by_key(discrepancies, "device-unknown", _list_own_host):
        if len({member.device for member in members}) == len(members) > 1:
            yield CablingRepair(
                members,
                f"new/{host}",
                f"Node that is not in the design: {host}, {len(members)} adapters",
                f"{host} was added to the fabric, and not to the design",
            )


def _merge_new_adapters(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """One silent adapter of a switch, and a new one that names no host in another port there: it may be the same."""
    silent = dict(
        group_by_key(
            discrepancies,
            "missing",
            lambda adapter_link: _list_devices(adapter_link, of_nodes=False) if adapter_link.nodes else [],
        )
    )
    nameless = [
        adapter_link
        for adapter_link in discrepancies
        if len(adapter_link.cables) == 1 and not _list_own_host(adapter_link)
    ]
    for key, new in group_by_key(
        nameless, "device-unknown", lambda adapter_link: _list_devices(adapter_link, of_nodes=False)
    ):
        if len(lost := silent.get(key, ())) == len(new) == 1:
            adapter = next(end.device for end in lost[0].ends if end.node)
            yield CablingRepair(
                (*lost, *new),
                f"new-adapter/{lost[0].ends[0].guid}",
                f"No link of {adapter}, and a new adapter in another port of {key[0]}",
                f"{adapter} may have been replaced, and its cable put into the other port: read the GUID on the card",
            )


def _merge_trays(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Many links between one node and one box down, as between a compute tray and a switch tray of an NVLink rack."""
    for (node, box), members in group_by_key(discrepancies, "missing", _list_node_and_box):
        if len(members) >= MIN_SWITCH_CABLES:
            yield CablingRepair(
                members,
                f"trays/{node}/{box}",
                f"No link: {len(members)} links between {node} and {box}",
                f"{node} and {box} answer, but {len(members)} links between them are down: the connectors or cartridge"
                " that these links have in common",
            )


def _merge_adapters(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Many links of one adapter or GPU down, though others of its node work."""
    for (device, guid), members in group_by_key(
        discrepancies, "missing", lambda each: _list_devices(each, of_nodes=True)
    ):
        if len(members) >= MIN_SWITCH_CABLES:
            yield CablingRepair(
                members,
                f"adapter/{guid}",
                f"No link: {len(members)} ports of {device}",
                f"{len(members)} ports of {device} have no link, and other devices of its node have: {device} itself",
            )


def _merge_nodes(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Many cables of one node down or slow, or all of them slow: what they have in common in the node."""
    members_of: dict[str, list[CablingDiscrepancy]] = {}
    for discrepancy in discrepancies:
        if discrepancy.kind in LOST_KINDS and len(discrepancy.nodes) == 1:
            members_of.setdefault(discrepancy.nodes[0], []).append(discrepancy)
    for node, members in members_of.items():
        many = len(members)
        if many >= MIN_SWITCH_CABLES or many == members[0].node_cables > 1:
            kind = find_common_kind(members)
            yield CablingRepair(
                tuple(members),
                f"links/{node}",
                f"{LOST_TITLES[kind]}: {many} cables of {node}",
                f"{node} answers, but {many} of its {members[0].node_cables} cables {LOST[kind]}: a card or a bundle of"
                " the node",
            )


def _merge_switches(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Many cables of one switch without link, though the switch answers: what these ports have in common there."""
    groups = group_by_key(discrepancies, "missing", lambda each: _list_devices(each, of_nodes=False))
    for (device, guid), members in sorted(groups, key=lambda group: -len(group[1])):
        if len(members) >= MIN_SWITCH_CABLES:
            yield CablingRepair(
                members,
                f"switch/{guid}",
                f"No link: {len(members)} cables of {device}",
                f"{device} answers, but {len(members)} of its cables have no link: a bundle, a panel, or the switch",
            )


def _group_chips(
    discrepancies: Sequence[CablingDiscrepancy], kind: str
) -> Iterator[tuple[str, str, tuple[CablingDiscrepancy, ...]]]:
    """Yield the card that several chips are on, else their box; the chips' names; and the chips."""
    for (box,), members in group_by_key(discrepancies, kind, _list_own_box):
        if len(members) > 1:
            modules = {member.module for member in members}
            card = modules.pop() if len(modules) == 1 else ""
            yield f"{box} {card}" if card else box, ", ".join(member.device for member in members), members


def _is_bundle(members: Sequence[CablingDiscrepancy]) -> bool:
    """Return whether these are all of the cables between two switches."""
    return len(members) == members[0].bundle > 1 if members else False


def _group_largest_first(
    discrepancies: Sequence[CablingDiscrepancy],
    kind: str,
    list_keys: Callable[[CablingDiscrepancy], Iterable[tuple[str, ...]]],
) -> Iterator[tuple[tuple[str, ...], tuple[CablingDiscrepancy, ...]]]:
    """Yield groups, each discrepancy in the largest of those that it could be in, if that group takes it."""
    groups = sorted(group_by_key(discrepancies, kind, list_keys), key=lambda group: (-len(group[1]), group[0]))
    left = {id(member) for _, members in groups for member in members}
    for key, members in groups:
        remaining = tuple(member for member in members if id(member) in left)
        left -= set(map(id, remaining)) if len(remaining) >= MIN_BUNDLE_SWAPS or _is_bundle(remaining) else set()
        yield key, remaining


def _list_devices(discrepancy: CablingDiscrepancy, *, of_nodes: bool) -> list[tuple[str, str]]:
    return [(end.device, end.guid) for end in discrepancy.ends if bool(end.node) == of_nodes]


def _list_node_and_box(discrepancy: CablingDiscrepancy) -> list[tuple[str, str]]:
    nodes = [end.node for end in discrepancy.ends if end.node]
    boxes = [end.box for end in discrepancy.ends if end.box]
    return [(nodes[0], boxes[0])] if nodes and boxes else []


def _list_own_box(discrepancy: CablingDiscrepancy) -> list[tuple[str]]:
    return [(discrepancy.box,)] if discrepancy.box else []


def _list_own_rack(discrepancy: CablingDiscrepancy) -> list[tuple[str, str]]:
    own = next((end for end in discrepancy.ends if discrepancy.device in (end.node, end.device)), None)
    return [(own.site, own.rack)] if own else []


def _list_own_host(discrepancy: CablingDiscrepancy) -> list[tuple[str]]:
    """Return the host that an adapter names before its own name, as `n0001 mlx5_0` or `n0001-ib0`."""
    match = ADAPTER_OF_HOST.fullmatch(discrepancy.device)
    return [(match["host"],)] if match and match["host"].partition(".")[0] != "localhost" else []


def _list_swapped_switches(discrepancy: CablingDiscrepancy) -> list[tuple[str, ...]]:
    """Return the switches between which cables are exchanged: all of them, and those at one end of the cables alone.

    None for a swap on one switch.
    """
    ends = [pair.expected.ends for pair in discrepancy.cables if pair.expected]
    sides = [{end.device for end in side if not end.node} for side in zip(*ends, strict=True)]
    return [tuple(sorted(names)) for names in (sides[0] | sides[1], *sides) if 1 < len(names) <= MAX_SWAPPED]


MERGES = (
    merge_lost_switches,
    _merge_lost_boxes,
    _merge_renewed_boxes,
    _merge_links_in_boxes,
    _merge_planes,
    _merge_racks,
    _merge_units,
    _merge_trunks,
    merge_many_plugs,
    merge_lost_plugs,
    _merge_disabled_ports,
    _merge_bundles,
    _merge_moved_nodes,
    merge_moved_plugs,
    _merge_adapters,
    _merge_trays,
    _merge_nodes,
    _merge_switches,
    _merge_exchanged_adapters,
    _merge_new_hosts,
    _merge_new_adapters,
)
"""The common causes, the surest first."""
