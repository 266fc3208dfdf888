"""Gives each host of an inferred tree its place: a unit, and the port that is its own on each leaf of that unit.

Plugs vote. The ports to nodes are the range that most plugs are in, so a node in a far port does not widen it. A host
whose plugs are all outside of that range has the place that its number says, if that place is free. So has a host that
stands out of the order of the names: most names count with the leaf ports, and such a series says where a node belongs.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

Place = tuple[int, int]
"""The number of a unit, and a leaf port."""
PlugVotes = Mapping[str, Counter[Place]]
"""For each host, where its plugs are."""
EMPTY_PORT_COST = 0.5
"""Our own choice: a range may take in a free port for each half of a node's plugs that it gains."""
MIN_SHARE = 0.5
"""A range that fewer plugs are in does not say where the ports to nodes are."""
MAX_PORT = 4097
NUMBERED = re.compile(r"(.*?)(\d{1,9})")
"""A node's name that ends with a number."""
MAX_NUMBER = 10**9
MIN_FOLLOWING = 0.75
MIN_NODES = 2
"""Our own choice: so large a part of the nodes of a unit with one prefix, and so many, make a series."""


class NameSeries(NamedTuple):
    """Names of a unit that count with the ports: the number in a name is the port plus `offset`.

    `ports` go from the first to the last node that follows it.
    """

    unit: int
    prefix: str
    digits: int
    offset: int
    ports: range

    def name(self, port: int) -> str:
        """Return the name that the node in a port has."""
        return f"{self.prefix}{max(port + self.offset, 0):0{self.digits}}"

    def find_port(self, host: str) -> int | None:
        """Return the port of a name of the series, None for any other name."""
        match = NUMBERED.fullmatch(host)
        port = int(match[2]) - self.offset if match else 0
        return port if self.name(port) == host else None


def find_name_series(places: Mapping[str, Place]) -> list[NameSeries]:
    """Return the series by which most nodes of a unit with one prefix are named. A unit may have several prefixes."""
    every = []
    for (unit, prefix), numbers in _group_by_prefix(places).items():
        digits = max((len(text) for text, _ in numbers if text.startswith("0")), default=1)
        offset, _ = Counter(int(text) - port for text, port in numbers).most_common(1)[0]
        series = NameSeries(unit, prefix, digits, offset, range(0))
        ports = [port for text, port in numbers if series.name(port) == f"{prefix}{text}"]
        if len(ports) >= max(MIN_NODES, MIN_FOLLOWING * len(numbers)):
            every.append(series._replace(ports=range(min(ports), max(ports) + 1)))
    return every


def guess_name(every: Iterable[NameSeries], taken: Collection[int], port: int) -> str:
    """Return the name that the node in a free port of a unit would have by its neighbours, "" if they do not tell.

    It is that of the series around the port, or that of the nearest nodes below, or above. `taken` are the other ports.
    """
    around = [series for series in every if port in series.ports]
    below = [series for series in every if series.ports[-1] == max((at for at in taken if at < port), default=-1)]
    above = [series for series in every if series.ports[0] == min((at for at in taken if at > port), default=-1)]
    near = next((series for group in (around, below, above) for series in group), None)
    return near.name(port) if near and port + near.offset >= 0 else ""


def _group_by_prefix(places: Mapping[str, Place]) -> dict[tuple[int, str], list[tuple[str, int]]]:
    """Return the numbers of the names and their ports, by unit and prefix, in the order of the ports."""
    groups: dict[tuple[int, str], list[tuple[str, int]]] = defaultdict(list)
    for host, (unit, port) in sorted(places.items(), key=lambda item: item[1]):
        if match := NUMBERED.fullmatch(host):
            groups[unit, match[1]].append((match[2], port))
    return groups


def find_misplaced(places: Mapping[str, Place], down: range) -> dict[str, Place | None]:
    """Return the nodes that stand out of the order of the others' names, with the place that their number has.

    Where that is taken by a node that belongs nowhere else, the place is None. Nodes with gaps in their numbers, or in
    another order than their names, stand as they should. Of nodes in each other's places, each is named.
    """
    series = find_name_series(places)
    claims = _list_claims(places, series, down)
    odd = set(_list_out_of_order(places, {host for host, own in places.items() if own in claims[host]}))
    wanted = {
        host: claims[host][0] for host, own in places.items() if len(claims[host]) == 1 and own not in claims[host]
    }
    occupant = {place: host for host, place in places.items()}
    free = _drop_blocked(wanted, occupant)
    moved: set[str] = set()
    for chain in _list_chains(free, occupant):
        # The names with which the series of their unit would go on there. Of another unit's names, they say nothing.
        named = {s.name(places[host][1]) for host in chain for s in series if s.unit == places[host][0]}
        if odd & chain and named.isdisjoint(places.keys() - chain):
            moved |= chain
    return {**dict.fromkeys(odd & wanted.keys()), **{host: free[host] for host in moved}}


def _list_claims(hosts: Iterable[str], series: Iterable[NameSeries], down: range) -> dict[str, list[Place]]:
    """Return the places that each name has by any of the series."""
    by_offset: dict[tuple[str, int], list[NameSeries]] = defaultdict(list)
    for own in series:
        by_offset[own.prefix, own.offset].append(own)
    claims: dict[str, list[Place]] = {}
    for host in hosts:
        match = NUMBERED.fullmatch(host)
        prefix, number = (match[1], int(match[2])) if match else ("", 0)
        claims[host] = [
            (own.unit, port)
            for port in down
            for own in by_offset.get((prefix, number - port), ())
            if own.name(port) == host
        ]
    return claims


def _drop_blocked(wanted: Mapping[str, Place], occupant: Mapping[Place, str]) -> dict[str, Place]:
    """Leave out the nodes whose place has a node that stays there."""
    while True:
        free = {host: place for host, place in wanted.items() if occupant.get(place, host) in wanted}
        if len(free) == len(wanted):
            return free
        wanted = free


def _list_chains(wanted: Mapping[str, Place], occupant: Mapping[Place, str]) -> Iterator[set[str]]:
    """Yield the nodes that want each other's places, each with the next one's, to a free place or in a circle."""
    following = {host: occupant.get(place, "") for host, place in wanted.items()}
    before = {there: host for host, there in following.items() if there}
    left = set(wanted)
    while left:
        chain = {start := min(left)}
        for step in (following, before):
            here = step.get(start, "")
            while here and here not in chain:
                chain.add(here)
                here = step.get(here, "")
        left -= chain
        yield chain


def _list_out_of_order(places: Mapping[str, Place], following: Container[str]) -> Iterator[str]:
    """Yield the nodes without which the numbers of most others with their prefix rise with the ports.

    In each unit, and from unit to unit. Of two that could be left out, the one that follows no series is among them.
    """
    groups = _group_by_prefix(places)
    whole: dict[str, list[list[tuple[str, int]]]] = defaultdict(list)
    for (_, prefix), numbers in groups.items():
        whole[prefix].append(numbers)
    runs = [(prefix, numbers) for (_, prefix), numbers in groups.items()]
    for prefix, units in whole.items():
        units.sort(key=lambda numbers: median(int(text) for text, _ in numbers))
        runs.append((prefix, [number for numbers in units for number in numbers]))
    for prefix, numbers in runs:
        kept = _find_rising([int(text) for text, _ in numbers])
        if len(kept) >= max(MIN_NODES, MIN_FOLLOWING * len(numbers)):
            names = [f"{prefix}{text}" for text, _ in numbers]
            yield from (name for at, name in enumerate(names) if at not in kept)
            yield from _list_inverted(names, [int(text) for text, _ in numbers], following)


def _list_inverted(names: Sequence[str], numbers: Sequence[int], following: Container[str]) -> Iterator[str]:
    """Yield the nodes that stand behind a node with a higher number that follows its series, or before a lower one."""
    known = [number if name in following else None for name, number in zip(names, numbers, strict=True)]
    highest = accumulate((-1 if each is None else each for each in known), max)
    lowest = accumulate((MAX_NUMBER if each is None else each for each in reversed(known)), min)
    for name, number, below, above in zip(names, numbers, highest, reversed(list(lowest)), strict=True):
        if name not in following and not below < number < above:
            yield name


def _find_rising(numbers: list[int]) -> set[int]:
    """Return the indexes of the longest part of the numbers that rises."""
    ends: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for at, number in enumerate(numbers):
        place = bisect_left(ends, number)
        before.append(tails[place - 1] if place else -1)
        ends[place : place + 1], tails[place : place + 1] = [number], [at]
    kept, at = set[int](), tails[-1] if tails else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return kept


def find_down_ports(votes: PlugVotes, rails: int, up: range) -> range:
    """Return the range of leaf ports that has most plugs of nodes for the free ports in it. None of them leads `up`.

    Without plugs it is empty.
    """
    plugs = Counter[int]()
    for places in votes.values():
        for (_, port), count in places.items():
            plugs[port] += count
    sides = [[p for p in sorted(plugs) if p < up[0]], [p for p in sorted(plugs) if p > up[-1]]]
    side = max(sides, key=lambda ports: sum(plugs[port] for port in ports))
    if not side:
        return range(0)
    dense = _find_dense_range(side, plugs, EMPTY_PORT_COST * rails)
    few = sum(plugs[port] for port in dense) < MIN_SHARE * sum(plugs[port] for port in side)
    return range(side[0], side[-1] + 1) if few else dense


def _find_dense_range(ports: list[int], plugs: Mapping[int, int], empty_cost: float) -> range:
    """Return the range with the most plugs, less the cost of its free ports."""
    best, best_score = range(0), 0.0
    start, score = ports[0], 0.0
    for before, port in zip([ports[0] - 1, *ports], ports, strict=False):
        score -= empty_cost * (port - before - 1)
        if score <= 0:
            start, score = port, 0.0
        score += plugs[port]
        if score > best_score:
            best, best_score = range(start, port + 1), score
    return best


class HostPlaces(NamedTuple):
    """The leaf ports to nodes, and the place of each host.

    `crowded` are the hosts out of the order of the names whose own places others have. They have those of their plugs.
    """

    down: range
    places: dict[str, Place]
    crowded: tuple[str, ...] = ()


def find_places(votes: PlugVotes, rails: int, up: range) -> HostPlaces:
    """Return the places of the hosts. Without plugs, there are none."""
    down = find_down_ports(votes, rails, up)
    assigned = assign_places(votes, down)
    left = [host for host in votes if host not in assigned]
    for _, (_, port) in sorted(_list_predicted_places(left, assigned, range(1, MAX_PORT)), key=lambda item: item[1]):
        if down and port not in up and port in (down[0] - 1, down[-1] + 1):
            down = range(min(port, down[0]), max(port, down[-1]) + 1)
    places = assign_places(votes, down) if left else assigned
    misplaced = find_misplaced(places, down)
    places |= {host: place for host, place in misplaced.items() if place}
    return HostPlaces(down, places, tuple(sorted(host for host, place in misplaced.items() if not place)))


def assign_places(votes: PlugVotes, down: range) -> dict[str, Place]:
    """Return the place of each host: where most of its plugs are, or else where its number belongs."""
    claims = [
        (count, host, place) for host, places in votes.items() for place, count in places.items() if place[1] in down
    ]
    order = {host: number for number, host in enumerate(votes)}
    taken: dict[Place, str] = {}
    place_of: dict[str, Place] = {}
    for _, host, place in sorted(claims, key=lambda claim: (-claim[0], order[claim[1]], claim[2])):
        if host not in place_of and place not in taken:
            place_of[host], taken[place] = place, host
    for host, place in _list_predicted_places([host for host in votes if host not in place_of], place_of, down):
        if host not in place_of and place not in taken:
            place_of[host], taken[place] = place, host
    return place_of


def place_named_hosts(votes: PlugVotes, places: Mapping[str, Place], down: range) -> dict[str, Place]:
    """Return the places of further hosts, all of whose plugs are in the free place that their names say."""
    series, taken = find_name_series(places), set(places.values())
    place_of: dict[str, Place] = {}
    for host, (place, *others) in ((host, list(count)) for host, count in votes.items()):
        is_own = any(own.unit == place[0] and own.find_port(host) == place[1] for own in series)
        if is_own and not others and place not in taken and place[1] in down:
            place_of[host] = place
            taken.add(place)
    return place_of


def _list_predicted_places(hosts: list[str], places: Mapping[str, Place], down: range) -> Iterator[tuple[str, Place]]:
    """Yield where the names of hosts without a place say that they belong."""
    every = sorted(find_name_series(places)) if hosts else []
    for host in hosts:
        for series in every:
            port = series.find_port(host)
            if port is not None and port in down:
                yield host, (series.unit, port)
