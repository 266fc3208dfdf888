"""Tells the host and the rail of each discovered adapter. Majorities decide, so a few wrong names change nothing.

Hosts of one fabric may name their adapters in several ways: `mlx5_3`, `HCA-4`, `ibp24s0`, or by the order of an
inventory. Adapters that meet at a leaf are on one rail; where the hosts of two ways meet at no leaf, the
order of the names tells.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.fabric.design.devices import list_adapter_names
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredDevice
from assay.model.fleet import Fleet
from assay.model.specs.fabric.adapters import AdapterNames, HostAdapter

Leaves = Mapping[str, Sequence[str]]
"""The switches at each adapter's cables, by the adapter's GUID."""
NamesAtLeaves = dict[str, Counter[str]]
"""For each name, how many adapters that have it are at each leaf."""
LISTED = -1
MIN_COMMON = 2 / 3
"""Hosts below different dead leaves have so many names in common. Servers of two makers have fewer, such as mlx5_0
to mlx5_7, and mlx5_0, 3, 4, 5, 6, 9, 10 and 11."""
FEW = 0.25
"""A slot that fewer hosts have, as a part of those that have the most frequent slot, is no rail."""


def list_inventory_adapters(fleet: Fleet) -> dict[str, HostAdapter]:
    """Return the host of each adapter that the inventory lists, by GUID."""
    return {
        guid: HostAdapter(node.name, name.partition(" ")[2], rail)
        for node in fleet.nodes.values()
        for rail, (guid, name) in enumerate(zip(node.hca_guids, list_adapter_names(node, fleet), strict=True))
    }


def find_hosts(
    devices: Iterable[DiscoveredDevice], names: AdapterNames, listed: Mapping[str, HostAdapter] | None = None
) -> dict[str, HostAdapter]:
    """Return the host of each adapter by GUID. What is `listed` wins, then what an adapter announces, also as its name.

    A host of which two adapters announce the same name is left out. Adapters that announce the same text and share a
    system image GUID are one card, and so in one host.
    """
    known, adapters = dict(listed or {}), dict[str, HostAdapter]()
    cards: dict[tuple[str, str], list[str]] = defaultdict(list)
    hcas = [device for device in devices if device.kind == "hca" and device.description != AGGREGATION_NODE]
    for device in hcas:
        named = names.read(device.name)
        if device.guid in known:
            if named and known[device.guid].rail >= 0:
                known[device.guid] = known[device.guid]._replace(slot=named.slot)
        elif named:
            adapters[device.guid] = named
        elif device.system and device.description:
            cards[device.description, device.system].append(device.guid)
    count = Counter(adapters.values())
    ambiguous = {adapter.host for adapter, times in count.items() if times > 1}
    adapters = {guid: adapter for guid, adapter in adapters.items() if adapter.host not in ambiguous}
    for (_, system), guids in cards.items():
        if len(guids) > 1:
            adapters |= {guid: HostAdapter(f"host-{system}", str(number)) for number, guid in enumerate(sorted(guids))}
    return adapters | {device.guid: known[device.guid] for device in hcas if device.guid in known}


def sort_naturally(text: str) -> list[tuple[int, str]]:
    """Return a sort key by which mlx5_2 comes before mlx5_10."""
    return [(int(number or 0), rest) for number, rest in re.findall(r"([0-9]{1,9})|([^0-9]+|[0-9]+)", text)]


def join_groups(members: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the groups that the pairs join."""
    group_of = {member: {member} for member in members}
    for a, b in pairs:
        if group_of[a] is not group_of[b]:
            group_of[a] |= group_of[b]
            for member in group_of[b]:
                group_of[member] = group_of[a]
    return list({id(group): group for group in group_of.values()}.values())


def vote(ballots: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the number that most ballots have for each name."""
    count: dict[str, Counter[int]] = defaultdict(Counter)
    for name, number in ballots:
        count[name][number] += 1
    return {name: numbers.most_common(1)[0][0] for name, numbers in count.items()}


def vote_apart(ballots: Iterable[tuple[str, int]], group_of: Mapping[str, object]) -> dict[str, int]:
    """Return the number that most ballots have for each name; no two names of a group have the same, if they need not.

    The surest come first. Of equal ones, the name with the first ballot has the lowest number.
    """
    count: dict[str, Counter[int]] = defaultdict(Counter)
    for name, number in ballots:
        count[name][number] += 1
    best = {name: sorted(numbers.items(), key=lambda item: (-item[1], item[0])) for name, numbers in count.items()}
    margin = {name: first[1] - (others[0][1] if others else 0) for name, (first, *others) in best.items()}
    taken: set[tuple[object, int]] = set()
    chosen: dict[str, int] = {}
    for name in sorted(best, key=lambda name: -margin[name]):
        numbers = [number for number, _ in best[name]]
        chosen[name] = next((number for number in numbers if (group_of.get(name), number) not in taken), numbers[0])
        taken.add((group_of.get(name), chosen[name]))
    return chosen


def find_mode(numbers: Iterable[int]) -> int:
    """Return the most frequent number."""
    return Counter(numbers).most_common(1)[0][0]


def find_most_frequent(texts: Iterable[str]) -> str:
    """Return the most frequent text, the first of several, "" if there is none."""
    counts = Counter(texts)
    return max(counts, key=lambda text: counts[text], default="")


def find_usual_range(ports: Iterable[int], share: float = 0.5, strays: int = 0) -> range:
    """Return the range of the ports that are used more often than `share` of the usual and more than `strays` times.

    If there are none, it has all ports.
    """
    count = Counter(ports)
    usual = find_mode(count.values())
    known = [port for port, times in count.items() if times > max(usual * share, strays)] or list(count)
    return range(min(known), max(known) + 1)


class Slot(NamedTuple):
    """A slot of the hosts that name their adapters in one `way`: its `number` in a list (way LISTED), or its name."""

    way: int
    number: int
    name: str


class AdapterRails(NamedTuple):
    """The host and the rail of each adapter by GUID, and what the adapter of each rail is called.

    `is_listed`: a list gives the order of the rails.
    """

    names: list[str]
    of_adapter: Mapping[str, tuple[str, int]]
    is_listed: bool = False


def find_rails(hosts: Mapping[str, HostAdapter], leaves: Leaves) -> AdapterRails:
    """Return the rails."""
    way_of = _find_ways(hosts, leaves)
    slot_of = {
        guid: Slot(LISTED, adapter.rail, "") if adapter.rail >= 0 else Slot(way_of[adapter.host], -1, adapter.slot)
        for guid, adapter in hosts.items()
    }
    ways = _list_slots(Counter(slot_of.values()))
    if not ways:
        return AdapterRails([], {})
    first, *others = ways
    meetings = _Meetings(slot_of, leaves)
    rails = {slot: rail for rail, slot in enumerate(first)}
    while others:  # those that meet known rails come first, and make more rails known
        votes = [meetings.vote(slots, rails) for slots in others]
        chosen = max(range(len(others)), key=lambda at: (len(votes[at]), -at))
        rails |= _match(others.pop(chosen), votes[chosen], len(first))
    names = [find_most_frequent(hosts[guid].slot for guid, own in slot_of.items() if own == slot) for slot in first]
    known = {guid: (adapter.host, rails[slot_of[guid]]) for guid, adapter in hosts.items() if slot_of[guid] in rails}
    return AdapterRails(names, known, first[0].way == LISTED)


def _find_ways(hosts: Mapping[str, HostAdapter], leaves: Leaves) -> dict[str, int]:
    """Return the way in which each host names its adapters.

    Hosts with most names in common name them in one way, unless they have different names at the same leaves.
    """
    named: dict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    for guid, adapter in hosts.items():
        if adapter.rail < 0:
            named[adapter.host][adapter.slot] = leaves.get(guid, ())
    alike: dict[frozenset[str], list[str]] = defaultdict(list)
    for host, slots in named.items():
        alike[frozenset(slots)].append(host)
    ways: list[NamesAtLeaves] = []
    way_of: dict[str, int] = {}
    for names, members in sorted(alike.items(), key=lambda item: (-len(item[1]), sorted(item[0]))):
        own = {name: Counter(leaf for host in members for leaf in named[host][name]) for name in names}
        way = next((way for way, known in enumerate(ways) if _is_one_way(own, known)), len(ways))
        ways += [defaultdict(Counter)] if way == len(ways) else []
        for name, at in own.items():
            ways[way][name] += at
        way_of |= dict.fromkeys(members, way)
    return way_of


def _is_one_way(own: NamesAtLeaves, known: NamesAtLeaves) -> bool:
    """Return whether they have most names in common, and most adapters do not meet those of another name."""
    common = own.keys() & known.keys()
    other = sum((own[name] & at).total() for name in own for other_name, at in known.items() if other_name != name)
    adapters = sum(at.total() for at in own.values())
    return len(common) >= MIN_COMMON * min(len(own), len(known)) and 2 * other <= adapters


def _list_slots(count: Mapping[Slot, int]) -> list[list[Slot]]:
    """Return the slots of each way in their order. A list comes first, then the most frequent way."""
    of_way: dict[int, list[Slot]] = defaultdict(list)
    for slot in count:
        of_way[slot.way].append(slot)
    many = {way: max(count[slot] for slot in slots) for way, slots in of_way.items()}
    order = sorted(of_way, key=lambda way: (way != LISTED, -many[way], way))
    return [
        sorted(
            (slot for slot in of_way[way] if count[slot] >= FEW * many[way]),
            key=lambda slot: (slot.number, sort_naturally(slot.name)),
        )
        for way in order
    ]


class _Meetings:
    """The slots that meet at each leaf."""

    def __init__(self, slot_of: Mapping[str, Slot], leaves: Leaves) -> None:
        self.at: dict[str, Counter[Slot]] = defaultdict(Counter)
        self.leaves_of: dict[Slot, set[str]] = defaultdict(set)
        for guid, slot in slot_of.items():
            for leaf in leaves.get(guid, ()):
                self.at[leaf][slot] += 1
                self.leaves_of[slot].add(leaf)

    def vote(self, slots: Sequence[Slot], rails: Mapping[Slot, int]) -> dict[Slot, int]:
        """Return the rail that most adapters have at the leaves of each slot. Without any, the slot is left out."""
        rail_of = {}
        for slot in slots:
            count = Counter[int]()
            for leaf in self.leaves_of[slot]:
                met = {other: times for other, times in self.at[leaf].items() if other in rails}
                count.update({rails[other]: min(times, self.at[leaf][slot]) for other, times in met.items()})
            if count:
                rail_of[slot] = count.most_common(1)[0][0]
        return rail_of


def _match(slots: Sequence[Slot], met: Mapping[Slot, int], many: int) -> dict[Slot, int]:
    """Return the rails of one way's slots: those that its adapters meet; for the others the order of their names."""
    if len(set(met.values())) < len(met) or not (met or len(slots) == many):
        return {}
    left = [rail for rail in range(many) if rail not in met.values()]
    return {**met, **dict(zip((slot for slot in slots if slot not in met), left, strict=False))}
