"""Tells the rail of each host's adapters, whatever names the hosts have for them.

Hosts of one fabric may name their adapters in several ways: `mlx5_3`, `HCA-4`, `ibp24s0`, or by the order of an
inventory. Adapters that meet at a leaf are on one rail; where the hosts of two ways meet at no leaf, the
order of the names tells.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from assay.fabric.learn.host_recognition import sort_naturally
from assay.fabric.learn.majority_votes import find_most_frequent
from assay.model.specs.fabric.adapter_names import HostAdapter

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
    slot_of = {guid: Slot(LISTED, one.rail, "") if one.rail >= 0 else Slot(way_of[one.host], -1, one.slot)
               for guid, one in hosts.items()}  # fmt: skip
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
    names = [find_most_frequent(hosts[guid].slot for guid, its in slot_of.items() if its == slot) for slot in first]
    known = {guid: (one.host, rails[slot_of[guid]]) for guid, one in hosts.items() if slot_of[guid] in rails}
    return AdapterRails(names, known, first[0].way == LISTED)


def _find_ways(hosts: Mapping[str, HostAdapter], leaves: Leaves) -> dict[str, int]:
    """Return the way in which each host names its adapters.

    Hosts with most names in common name them in one way, unless they have different names at the same leaves.
    """
    named: dict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    for guid, one in hosts.items():
        if one.rail < 0:
            named[one.host][one.slot] = leaves.get(guid, ())
    alike: dict[frozenset[str], list[str]] = defaultdict(list)
    for host, slots in named.items():
        alike[frozenset(slots)].append(host)
    ways: list[NamesAtLeaves] = []
    found: dict[str, int] = {}
    for names, members in sorted(alike.items(), key=lambda item: (-len(item[1]), sorted(item[0]))):
        own = {name: Counter(leaf for host in members for leaf in named[host][name]) for name in names}
        way = next((way for way, known in enumerate(ways) if _is_one_way(own, known)), len(ways))
        ways += [defaultdict(Counter)] if way == len(ways) else []
        for name, at in own.items():
            ways[way][name] += at
        found |= dict.fromkeys(members, way)
    return found


def _is_one_way(own: NamesAtLeaves, known: NamesAtLeaves) -> bool:
    """Return whether they have most names in common, and most adapters do not meet those of another name."""
    common = own.keys() & known.keys()
    other = sum((own[name] & at).total() for name in own for its, at in known.items() if its != name)
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
        sorted((slot for slot in of_way[way] if count[slot] >= FEW * many[way]),
               key=lambda slot: (slot.number, sort_naturally(slot.name)))
        for way in order
    ]  # fmt: skip


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
        found = {}
        for slot in slots:
            count = Counter[int]()
            for leaf in self.leaves_of[slot]:
                count.update({rails[each]: min(times, self.at[leaf][slot]) for each, times in self.at[leaf].items()
                              if each in rails})  # fmt: skip
            if count:
                found[slot] = count.most_common(1)[0][0]
        return found


def _match(slots: Sequence[Slot], met: Mapping[Slot, int], many: int) -> dict[Slot, int]:
    """Return the rails of one way's slots: those that its adapters meet; for the others the order of their names."""
    if len(set(met.values())) < len(met) or not (met or len(slots) == many):
        return {}
    left = [rail for rail in range(many) if rail not in met.values()]
    return {**met, **dict(zip((slot for slot in slots if slot not in met), left, strict=False))}
