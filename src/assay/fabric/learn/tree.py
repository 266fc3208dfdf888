"""Infers the rules of a rail-optimised fat tree from a discovery, by majority: a few wrong cables change nothing.

Hosts vote for the unit that they are in and for the leaf port that is theirs; adapters vote for the rail of their leaf;
cables between switches vote for the order of spines and cores, and for the number of cables between two switches. A
switch or an adapter that the pattern needs and that nobody saw gets a GUID of its own (`UNSEEN`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import NamedTuple

from assay.fabric.discovery import AGGREGATION_NODE, FabricDiscovery
from assay.fabric.learn.hosts import (
    find_mode,
    find_rails,
    find_usual_range,
    join_groups,
    sort_naturally,
    vote,
    vote_apart,
)
from assay.fabric.learn.places import Place, find_places, place_named_hosts
from assay.model.specs.fabric.adapters import HostAdapter
from assay.model.specs.fabric.cable import PortId

Joints = Mapping[tuple[str, str], list[tuple[int, int]]]
"""The ports of the cables between a lower and an upper switch."""
Peers = Mapping[str, list[tuple[int, PortId]]]
"""For each device, the ports with a cable, and the port at its other end."""
ADAPTERS_BELOW = 0.2
"""A switch at which so many of its cables lead to adapters, such as one of storage, is none of a tier above leaves."""
TrunkCables = Collection[list[tuple[int, int]]]
"""For each pair of switches, the ports of their cables: at the lower switch, and at the upper one."""
SHARE_OF_GROWN = 0.2
"""Ports that lead to units which only some groups of switches have are used less often. A stray is used once."""
UNSEEN = 0xFFFF_FFFF_0000_0000
"""The GUIDs of what nobody saw count from here. IEEE assigns no GUID like these."""
OWN_RAIL = 0.75
"""A spine serves one rail if more than this part of its cables leads there. Of two rails, one may lack some leaves."""
MIN_RAILS_OF_HOST = 0.6
"""The part of the rails that a host must have to be a node of the tree: one dead leaf must not end that."""


@dataclass
class SwitchTier:
    """The switches of a tier in the order of the rules, and the ports to the tier above and below."""

    guids: list[str] = field(default_factory=list)
    down: range = range(0)
    up: range = range(0)
    per_pair: int = 1
    spread: bool = False


def join_upper_switches(
    discovery: FabricDiscovery, peers: Peers, lower: Iterable[str], without: Iterable[str] = ()
) -> Joints:
    """Return the cables from the lower switches to other switches that are not below them."""
    below = {*lower, *without}
    joints: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for guid in sorted(lower):  # always the same way
        for number, far in peers[guid]:
            if far.guid not in below and _is_switch(discovery, far):
                joints[guid, far.guid].append((number, far.number))
    count = Counter(upper for (_, upper), cables in joints.items() for _ in cables)
    count = Counter({upper: cables for upper, cables in count.items() if not _has_adapters(discovery, peers, upper)})
    usual = median(count.values()) if count else 0
    real = {  # no stray cable, and no switch beside the tree that hangs on one of its switches
        upper for upper, cables in count.items() if 1 < cables >= max(len(peers[upper]), usual) / 4
    }
    above = {far.guid for upper in real for _, far in peers[upper]} - below
    for upper in count.keys() - real:  # a spine of a pod with one unit may have one cable to a leaf, and more to cores
        others = [far.guid for _, far in peers[upper] if far.guid not in below]
        if len(others) > 1 and 2 * sum(guid in above for guid in others) > len(others):
            real.add(upper)
    return {pair: cables for pair, cables in joints.items() if pair[1] in real}


def drop_foreign_units(discovery: FabricDiscovery, peers: Peers, units: Sequence[list[str]]) -> list[list[str]]:
    """Return the units without those that lack a leaf and do not reach most of the spines that leaves reach.

    Such a switch belongs to storage or to a director: its hosts have one adapter each.
    """
    above = {
        leaf: {far.guid for _, far in peers[leaf] if _is_switch(discovery, far)}
        for unit in units
        for leaf in unit
        if leaf
    }
    usual = median(map(len, above.values()))
    kept = []
    for unit in units:
        own = [above[leaf] for leaf in unit if leaf]
        others = {spine for leaf, spines in above.items() if leaf not in unit for spine in spines}
        if all(unit) or len(units) == 1 or any(2 * len(spines & others) > usual for spines in own):
            kept.append(unit)
    return kept


def _is_switch(discovery: FabricDiscovery, port: PortId) -> bool:
    device = discovery.devices.get(port.guid)
    return device is not None and device.kind == "switch"


def _has_adapters(discovery: FabricDiscovery, peers: Peers, switch: str) -> bool:
    own = (discovery.devices.get(far.guid) for _, far in peers[switch])
    adapters = sum(
        device is not None and device.kind == "hca" and device.description != AGGREGATION_NODE for device in own
    )
    return adapters > ADAPTERS_BELOW * len(peers[switch])


class TrunkPattern(NamedTuple):
    """`per_pair` cables join two switches, at the `lower` and `upper` ports.

    `spread`: the lower switch has one port for each upper switch, and then again one for each. Otherwise the ports to
    one upper switch lie together.
    """

    per_pair: int
    lower: range
    upper: range
    spread: bool = False

    @classmethod
    def infer(cls, trunks: TrunkCables) -> TrunkPattern:
        """Return the pattern that most trunks have."""
        per = find_mode(map(len, trunks))
        whole = [sorted(port for port, _ in cables) for cables in trunks if len(cables) == per]
        apart = sum(ports[-1] - ports[0] >= per for ports in whole)
        lower = find_usual_range(port for cables in trunks for port, _ in cables)
        upper = find_usual_range((port for cables in trunks for _, port in cables), SHARE_OF_GROWN, strays=1)
        return cls(per, lower, upper, 2 * apart > len(whole))

    def find_number(self, port: int) -> int:
        """Return the number of the upper switch to which a port of the lower switch leads, by the pattern."""
        place = port - self.lower[0]
        return place % max(len(self.lower) // self.per_pair, 1) if self.spread else place // self.per_pair


class NoPattern(Exception):
    """The cabling has not the pattern that the rules of a design can describe."""


class FatTreeInference:
    """The inferred tree. Raises NoPattern where there is none."""

    def __init__(self, discovery: FabricDiscovery, hosts: Mapping[str, HostAdapter]) -> None:
        self.discovery = discovery
        self._unseen = UNSEEN
        self.peers: dict[str, list[tuple[int, PortId]]] = defaultdict(list)
        for a, b, _ in discovery.cables:
            self.peers[a.guid].append((a.number, b))
            self.peers[b.guid].append((b.number, a))
        known = {guid: host for guid, host in hosts.items() if guid in self.peers}
        self.rails = find_rails(known, {guid: [far.guid for _, far in self.peers[guid]] for guid in known})
        self.slots, self.known = self.rails.names, dict(self.rails.of_adapter)
        self.adapters = self._take_adapters()
        self.units = self._find_units()
        self.places: dict[str, Place] = {}
        self.leaves = SwitchTier()
        self.spines = SwitchTier()
        self.cores = SwitchTier()
        self.by_rail = False
        self.pod = 0
        self.planes = False
        self.absent_units: list[int] = []
        self._arrange()
        self._take_partial_hosts()

    @cached_property
    def hosts(self) -> dict[str, dict[int, str]]:
        """The adapters of each host of the tree, by rail."""
        adapters: dict[str, dict[int, str]] = defaultdict(dict)
        for guid, (host, rail) in self.adapters.items():
            adapters[host][rail] = guid
        return adapters

    def _take_adapters(self) -> dict[str, tuple[str, int]]:
        """Return the host and the rail of each adapter of the tree.

        A host has most of the rails, or half of them if most hosts at its leaves have the same ones.
        """
        known, many = self.rails.of_adapter, len(self.slots)
        rails_of: dict[str, set[int]] = defaultdict(set)
        for host, rail in known.values():
            rails_of[host].add(rail)
        usual: dict[str, Counter[frozenset[int]]] = defaultdict(Counter)
        for guid, (host, _) in known.items():
            usual[self.peers[guid][0][1].guid][frozenset(rails_of[host])] += 1
        alike = {
            host
            for guid, (host, _) in known.items()
            if usual[self.peers[guid][0][1].guid].most_common(1)[0][0] == rails_of[host]
        }
        taken = {
            host
            for host, rails in rails_of.items()
            if len(rails) >= MIN_RAILS_OF_HOST * many or (2 * len(rails) >= many and host in alike)
        }
        return {guid: own for guid, own in known.items() if own[0] in taken}

    def _take_partial_hosts(self) -> None:
        """Take hosts with too few cables for a node that stand where their names say: the other cables are lost."""
        leaf_at = {leaf: (unit, rail) for unit, leaves in enumerate(self.units) for rail, leaf in enumerate(leaves)}
        plugs = [
            (host, rail, leaf_at[far.guid], far.number)
            for guid, (host, rail) in self.known.items()
            if host not in self.hosts
            for _, far in self.peers[guid]
            if far.guid in leaf_at
        ]
        votes: dict[str, Counter[Place]] = defaultdict(Counter)
        for host, rail, (unit, of_leaf), port in plugs:
            votes[host][unit, port if rail == of_leaf else 0] += 1
        placed = place_named_hosts(votes, self.places, self.leaves.down)
        self.places |= placed
        self.adapters |= {guid: own for guid, own in self.known.items() if own[0] in placed}
        self.__dict__.pop("hosts", None)

    def _find_units(self) -> list[list[str]]:
        """Return each unit's leaves in rail order, "" for one that nobody saw. Leaves of a unit share their hosts."""
        rails: dict[str, Counter[int]] = defaultdict(Counter)
        of_host: dict[str, list[str]] = defaultdict(list)
        for guid, (host, rail) in self.adapters.items():
            for _, far in self.peers[guid]:
                if self._is_leaf(far.guid):
                    rails[far.guid][rail] += 1
                    of_host[host].append(far.guid)
        together = Counter((a, b) for leaves in of_host.values() for a in set(leaves) for b in set(leaves) if a < b)
        size = {leaf: sum(count.values()) for leaf, count in rails.items()}
        pairs = [pair for pair, times in together.items() if times * 2 > max(size[leaf] for leaf in pair)]
        units = []
        for group in join_groups(size, pairs):
            by_rail = {rails[leaf].most_common(1)[0][0]: leaf for leaf in sorted(group, key=lambda leaf: size[leaf])}
            if 2 * len(group) < len(self.slots):
                continue  # a switch with a stray adapter is no unit
            if len(by_rail) < len(group):
                raise NoPattern("two leaves of one unit have the same rail")
            units.append([by_rail.get(rail, "") for rail in range(len(self.slots))])
        if not units:
            raise NoPattern("no switches are the leaves of the same hosts")
        return drop_foreign_units(self.discovery, self.peers, units)

    def _is_leaf(self, guid: str) -> bool:
        """Return whether a switch has more adapters than the switches around it. A stray adapter makes no leaf."""
        around = [self.adapter_count[far.guid] for _, far in self.peers[guid] if far.guid not in self.adapters]
        return 2 * self.adapter_count[guid] * len(around) >= sum(around)

    @cached_property
    def adapter_count(self) -> Counter[str]:
        """The number of adapters at each switch."""
        return Counter(far.guid for guid in self.adapters for _, far in self.peers[guid])

    def _list_plug_votes(self) -> dict[str, Counter[Place]]:
        """Return the units and leaf ports that the plugs of each host are in."""
        unit_of = self._map_leaves_to_units()
        votes: dict[str, Counter[Place]] = defaultdict(Counter)
        for host, adapters in self.hosts.items():
            for guid in adapters.values():
                votes[host].update((unit_of[p.guid], p.number) for _, p in self.peers[guid] if p.guid in unit_of)
        return votes

    def _arrange(self) -> None:
        lower = {leaf for unit in self.units for leaf in unit if leaf}
        to_spines = join_upper_switches(self.discovery, self.peers, lower)
        if not to_spines:
            raise NoPattern("no switch joins the leaves")
        spines = {spine for _, spine in to_spines}
        to_cores = join_upper_switches(self.discovery, self.peers, spines, without=lower)
        rail_of = {leaf: rail for unit in self.units for rail, leaf in enumerate(unit) if leaf}
        rails_of_spine: dict[str, Counter[int]] = defaultdict(Counter)
        for (leaf, spine), cables in to_spines.items():
            rails_of_spine[spine][rail_of[leaf]] += len(cables)
        own_rail = sum(rails.most_common(1)[0][1] > OWN_RAIL * rails.total() for rails in rails_of_spine.values())
        self.by_rail = len(self.slots) > 1 and own_rail > OWN_RAIL * len(rails_of_spine)
        self.trunk = TrunkPattern.infer(to_spines.values())
        self.spines.per_pair, self.leaves.up, self.spines.down, self.spines.spread = self.trunk
        if not self.by_rail:
            self._find_first_port(to_spines, rail_of)
            if not self.rails.is_listed:
                self._order_rails(to_spines, rail_of)
        host_places = find_places(self._list_plug_votes(), len(self.slots), self.leaves.up)
        self.leaves.down, self.places, self.crowded = host_places
        if not self.leaves.down:
            raise NoPattern("no node has a plug in a leaf port that leads to no spine")
        self._order(to_spines, to_cores, rails_of_spine)

    def _find_first_port(self, to_spines: Joints, rail_of: Mapping[str, int]) -> None:
        """Begin the spines' ports to leaves where most cables say: nobody sees the first ports of a dead first leaf."""
        per = self.spines.per_pair
        many = len(self.slots)
        down = self.spines.down
        ends = [(rail_of[leaf], port) for (leaf, _), cables in to_spines.items() for _, port in cables]
        starts = range(down[0], 0, -per)[:many]
        agreed = {start: sum((port - start) // per % many == rail for rail, port in ends) for start in starts}
        best = max(starts, key=agreed.__getitem__)
        if agreed[best] > OWN_RAIL * len(ends):
            self.spines.down = range(best, down[-1] + 1)

    def _order_rails(self, to_spines: Joints, rail_of: Mapping[str, int]) -> None:
        """Put the rails into the order that their leaves have at the spines: the order of names need not be that."""
        places = vote(
            (str(rail_of[leaf]), (port - self.spines.down[0]) // self.spines.per_pair % len(self.slots))
            for (leaf, _), cables in to_spines.items()
            for _, port in cables
        )
        if sorted(places.values()) == list(range(len(self.slots))):
            self._take_rail_order(sorted(range(len(self.slots)), key=lambda rail: places[str(rail)]))

    def _take_rail_order(self, order: list[int]) -> None:
        """Number the rails anew: what was rail `order[0]` is rail 0."""
        rail_of = {rail: place for place, rail in enumerate(order)}
        self.slots = [self.slots[rail] for rail in order]
        self.units = [[unit[rail] for rail in order] for unit in self.units]
        self.adapters = {guid: (host, rail_of[rail]) for guid, (host, rail) in self.adapters.items()}
        self.known = {guid: (host, rail_of[rail]) for guid, (host, rail) in self.known.items()}
        self.__dict__.pop("hosts", None)

    def _order(self, to_spines: Joints, to_cores: Joints, rails_of_spine: Mapping[str, Counter[int]]) -> None:
        """Put units, spines and cores into the order that the ports at their other ends have."""
        pod_of_unit, unit_of = self._find_pods(to_spines), self._map_leaves_to_units()
        pod_of_spine = vote((spine, pod_of_unit[unit_of[leaf]]) for leaf, spine in to_spines)
        rail_of = {s: count.most_common(1)[0][0] if self.by_rail else 0 for s, count in rails_of_spine.items()}
        ballots = ((spine, self.trunk.find_number(lp)) for (_, spine), c in to_spines.items() for lp, _ in c)
        group_of = {spine: (pod, rail_of.get(spine, 0)) for spine, pod in pod_of_spine.items()}
        devices = self.discovery.devices
        in_order = sorted(ballots, key=lambda ballot: (sort_naturally(devices[ballot[0]].name), ballot[1]))
        number = vote_apart(in_order, group_of)
        width = max(number.values()) + 1
        slots = {(*group_of[spine], number[spine]): spine for spine in number}
        rails = range(len(self.slots)) if self.by_rail else range(1)
        groups = [(pod, rail) for pod in range(max(pod_of_unit) + 1) for rail in rails]
        if to_cores:
            groups = self._order_cores(to_cores, slots, groups, width)
            order = [rail for pod, rail in groups if pod == groups[0][0]]
            is_one_order = [rail for _, rail in groups] == order * (max(pod_of_unit) + 1)
            if self.by_rail and is_one_order and not self.rails.is_listed:
                self._take_rail_order(order)
        self.spines.guids = [
            slots.get((*group, place), "") or self.make_guid() for group in groups for place in range(width)
        ]
        self._order_units(to_spines, pod_of_unit, [pod for pod, _ in groups], is_deep=bool(to_cores))

    def _map_leaves_to_units(self) -> dict[str, int]:
        return {leaf: number for number, unit in enumerate(self.units) for leaf in unit if leaf}

    def _find_pods(self, to_spines: Joints) -> list[int]:
        """Return the pod of each unit: units that share spines. One rail tells, if all of its leaves are there."""
        spines_of: dict[str, set[str]] = defaultdict(set)
        for leaf, spine in to_spines:
            spines_of[leaf].add(spine)
        whole = next((rail for rail in range(len(self.slots)) if all(unit[rail] for unit in self.units)), None)
        if whole is None:
            raise NoPattern("every rail lacks a leaf")
        of_unit = [spines_of.get(unit[whole], set()) for unit in self.units]
        pairs = [
            (str(a), str(b))
            for a, spines in enumerate(of_unit)
            for b, others in enumerate(of_unit[:a])
            if 2 * len(spines & others) > len(spines)
        ]
        pods = join_groups(map(str, range(len(of_unit))), pairs)
        pod_of = {int(unit): pod for pod, group in enumerate(pods) for unit in group}
        return [pod_of[unit] for unit in range(len(self.units))]

    def _order_units(self, to_spines: Joints, pod_of_unit: list[int], pods: list[int], *, is_deep: bool) -> None:
        """Put the units into order: pod by pod as in `pods`, and within a pod by the spine ports of their leaves."""
        unit_of = self._map_leaves_to_units()
        ports = self.spines.per_pair * (1 if self.by_rail else len(self.slots))  # of one unit, on each spine
        places = vote(
            (str(unit_of[leaf]), (port - self.spines.down[0]) // ports)
            for (leaf, _), cables in to_spines.items()
            for _, port in cables
        )
        pod_order = list(dict.fromkeys(pods))
        place_of = {u: (pod_order.index(pod_of_unit[u]), places.get(str(u), u)) for u in unit_of.values()}
        order = sorted(place_of, key=lambda unit: place_of[unit])
        size = self._find_absent_units([place_of[unit] for unit in order], max(Counter(pod_of_unit).values()))
        self.pod = size if len(pod_order) > 1 or is_deep else 0
        self.units = [self.units[unit] for unit in order]
        row_of = {unit: row for row, unit in enumerate(order)}
        self.places = {host: (row_of[unit], port) for host, (unit, port) in self.places.items()}
        self.leaves.guids = [leaf or self.make_guid() for unit in self.units for leaf in unit]

    def _find_absent_units(self, places: list[tuple[int, int]], size: int) -> int:
        """Return the number of units of a pod, and note those that nobody saw. `places` are pod and place there."""
        if len(set(places)) < len(places) or min(place for _, place in places) < 0:
            return size  # some places are not certain, and the order must do
        size = max(place for _, place in places) + 1
        built = {pod * size + place for pod, place in places}
        self.absent_units = [place + 1 for place in range(max(built)) if place not in built]
        return size

    def _order_cores(
        self, to_cores: Joints, slots: dict[tuple[int, int, int], str], groups: list[tuple[int, int]], width: int
    ) -> list[tuple[int, int]]:
        """Put the cores into order, and return the groups of spines in theirs."""
        per, self.spines.up, _, _ = trunk = TrunkPattern.infer(to_cores.values())
        self.cores.per_pair = per
        place_of = {spine: place for place, spine in slots.items()}
        to_cores = {pair: cables for pair, cables in to_cores.items() if pair[0] in place_of}
        number = vote((core, trunk.find_number(sp)) for (_, core), c in to_cores.items() for sp, _ in c)
        plane = vote((core, place_of[spine][2]) for spine, core in to_cores)
        spines_of: dict[str, set[int]] = defaultdict(set)
        for spine, core in to_cores:
            spines_of[core].add(place_of[spine][2])
        self.planes = width > 1 and sum(len(places) for places in spines_of.values()) < 1.5 * len(spines_of)
        cores = {(plane[core] if self.planes else 0, number[core]): core for core in number}
        each = max(number.values()) + 1
        self.cores.guids = [
            cores.get((own_plane, place), "") or self.make_guid()
            for own_plane in range(width if self.planes else 1)
            for place in range(each)
        ]
        divisor = per if self.planes else per * width
        order = vote(
            (str(place_of[spine][:2]), (cp - 1) // divisor) for (spine, _), c in to_cores.items() for _, cp in c
        )
        return sorted(groups, key=lambda group: order.get(str(group), len(groups)))

    def make_guid(self) -> str:
        """Return a GUID for a switch or an adapter that nobody saw."""
        self._unseen += 1
        return f"0x{self._unseen:016x}"

    def list_adapters(self, host: str) -> list[str]:
        """Return the GUIDs of a host's adapters in rail order, unseen ones included."""
        return [self.hosts[host].get(rail) or self.make_guid() for rail in range(len(self.slots))]
