"""Gives each host of an inferred tree its place: a unit, and the port that is its own on each leaf of that unit.

Plugs vote. The ports to nodes are the range that most plugs are in, so a node in a far port does not widen it. A host
whose plugs are all outside of that range has the place that its number says, if that place is free. So has a host that
stands out of the order of the names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from assay.fabric.learn.name_series import Place, find_misplaced, find_name_series

PlugVotes = Mapping[str, Counter[Place]]
"""For each host, where its plugs are."""
EMPTY_PORT_COST = 0.5
"""Our own choice: a range may take in a free port for each half of a node's plugs that it gains."""
MAX_PORT = 4097
MIN_SHARE = 0.5
"""A range that fewer plugs are in does not say where the ports to nodes are."""


def find_down_ports(votes: PlugVotes, rails: int, up: range) -> range:
    """Return the range of leaf ports that has most plugs of nodes for the free ports in it. None of them leads `up`.

    Without plugs it is empty.
    """
    plugs = Counter(port for places in votes.values() for (_, port), count in places.items() for _ in range(count))
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
    found = assign_places(votes, down)
    left = [host for host in votes if host not in found]
    for _, (_, port) in sorted(_list_predicted_places(left, found, range(1, MAX_PORT)), key=lambda item: item[1]):
        if down and port not in up and port in (down[0] - 1, down[-1] + 1):
            down = range(min(port, down[0]), max(port, down[-1]) + 1)
    places = assign_places(votes, down) if left else found
    misplaced = find_misplaced(places, down)
    places |= {host: place for host, place in misplaced.items() if place}
    return HostPlaces(down, places, tuple(sorted(host for host, place in misplaced.items() if not place)))


def assign_places(votes: PlugVotes, down: range) -> dict[str, Place]:
    """Return the place of each host: where most of its plugs are, or else where its number belongs."""
    claims = [(count, host, place) for host, places in votes.items() for place, count in places.items()
              if place[1] in down]  # fmt: skip
    order = {host: number for number, host in enumerate(votes)}
    taken: dict[Place, str] = {}
    found: dict[str, Place] = {}
    for _, host, place in sorted(claims, key=lambda claim: (-claim[0], order[claim[1]], claim[2])):
        if host not in found and place not in taken:
            found[host], taken[place] = place, host
    for host, place in _list_predicted_places([host for host in votes if host not in found], found, down):
        if host not in found and place not in taken:
            found[host], taken[place] = place, host
    return found


def place_named_hosts(votes: PlugVotes, places: Mapping[str, Place], down: range) -> dict[str, Place]:
    """Return the places of further hosts, all of whose plugs are in the free place that their names say."""
    series, taken = find_name_series(places), set(places.values())
    found: dict[str, Place] = {}
    for host, (place, *others) in ((host, list(count)) for host, count in votes.items()):
        is_own = any(one.unit == place[0] and one.find_port(host) == place[1] for one in series)
        if is_own and not others and place not in taken and place[1] in down:
            found[host] = place
            taken.add(place)
    return found


def _list_predicted_places(hosts: list[str], found: Mapping[str, Place], down: range) -> Iterator[tuple[str, Place]]:
    """Yield where the names of hosts without a place say that they belong."""
    every = sorted(find_name_series(found)) if hosts else []
    for host in hosts:
        for series in every:
            port = series.find_port(host)
            if port is not None and port in down:
                yield host, (series.unit, port)
