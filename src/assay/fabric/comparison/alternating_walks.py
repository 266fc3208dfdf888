"""Two matchings on ports, and how they differ.

Expected and actual cabling are each a matching: a port has at most one cable. Leave out the cables that are in
both, and what remains falls into alternating paths and cycles, each a separate piece of work: a cycle of k
expected and k actual cables is k cables permuted (k = 2 is one swap); a path is cables missing, moved or
unexpected. Linear in the number of ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.model.fabric.ports_and_cables import PortId

Matching = Mapping[PortId, PortId]


@dataclass(frozen=True, slots=True)
class AlternatingWalk:
    """One alternating walk. `ports` in order of the walk; `first_expected` says which kind its first cable is.

    A cycle ends where it began, `ports[0] == ports[-1]`, and its first cable is an expected one.
    """

    ports: tuple[PortId, ...]
    first_expected: bool

    @property
    def is_cycle(self) -> bool:
        """Whether the walk is closed."""
        return len(self.ports) > 3 and self.ports[0] == self.ports[-1]

    @property
    def steps(self) -> list[tuple[bool, PortId, PortId]]:
        """Return the cables walked over: whether it is an expected one, from, to."""
        pairs = zip(self.ports, self.ports[1:], strict=False)
        return [((index % 2 == 0) == self.first_expected, a, b) for index, (a, b) in enumerate(pairs)]


def map_peer_ports(cables: Iterable[tuple[PortId, PortId]]) -> dict[PortId, PortId]:
    """Return each port's other end."""
    mates: dict[PortId, PortId] = {}
    for a, b in cables:
        mates[a], mates[b] = b, a
    return mates


def find_alternating_walks(expected: Matching, actual: Matching) -> list[AlternatingWalk]:
    """Return the components of the symmetric difference, paths first, in the order of the expected ports."""
    only_expected = {port: mate for port, mate in expected.items() if actual.get(port) != mate}
    only_actual = {port: mate for port, mate in actual.items() if expected.get(port) != mate}
    ends = [port for port in (*only_expected, *only_actual) if (port in only_expected) != (port in only_actual)]
    walks = [_walk(port, only_expected, only_actual) for port in ends]
    walks += [_walk(port, only_expected, only_actual) for port in (*only_expected, *only_actual)]
    return [walk for walk in walks if walk]


def _walk(start: PortId, expected: dict[PortId, PortId], actual: dict[PortId, PortId]) -> AlternatingWalk | None:
    """Follow cables of alternating kind from `start`, taking each away, until there is none to follow."""
    first_expected = start in expected
    edges, others = (expected, actual) if first_expected else (actual, expected)
    ports, here = [start], start
    while (there := edges.pop(here, None)) is not None:
        edges.pop(there, None)
        ports.append(there)
        here, edges, others = there, others, edges
    return AlternatingWalk(tuple(ports), first_expected) if len(ports) > 1 else None
