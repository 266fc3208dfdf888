"""Compares two matchings of ports (designed and found cabling) and splits their difference into independent walks.

In each matching a port has at most one cable. Without the cables that are in both, the rest falls into alternating
paths and cycles. A cycle of k designed and k found cables is k exchanged cables (k = 2 is one swap). A path is a cable
that is missing, moved or unexpected. The cost is linear in the number of ports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.model.specs.fabric.ports_and_cables import PortId

Matching = Mapping[PortId, PortId]


@dataclass(frozen=True, slots=True)
class AlternatingWalk:
    """One alternating walk over `ports`. `first_expected`: its first cable is a designed one.

    A cycle ends where it started, `ports[0] == ports[-1]`, and its first cable is a designed one.
    """

    ports: tuple[PortId, ...]
    first_expected: bool

    @property
    def is_cycle(self) -> bool:
        """Whether the walk is closed."""
        return len(self.ports) > 3 and self.ports[0] == self.ports[-1]

    @property
    def steps(self) -> list[tuple[bool, PortId, PortId]]:
        """The cables of the walk, each as (is it a designed one, from, to)."""
        pairs = zip(self.ports, self.ports[1:], strict=False)
        return [((index % 2 == 0) == self.first_expected, a, b) for index, (a, b) in enumerate(pairs)]


def find_alternating_walks(expected: Matching, actual: Matching) -> list[AlternatingWalk]:
    """Return the components of the symmetric difference: paths first, in the order of the expected ports."""
    only_expected = {port: peer for port, peer in expected.items() if actual.get(port) != peer}
    only_actual = {port: peer for port, peer in actual.items() if expected.get(port) != peer}
    ends = [port for port in (*only_expected, *only_actual) if (port in only_expected) != (port in only_actual)]
    walks = [_walk(port, only_expected, only_actual) for port in ends]
    walks += [_walk(port, only_expected, only_actual) for port in (*only_expected, *only_actual)]
    return [walk for walk in walks if walk]


def _walk(start: PortId, expected: dict[PortId, PortId], actual: dict[PortId, PortId]) -> AlternatingWalk | None:
    """Follow cables of alternating kind from `start` and remove each, until none is left to follow."""
    first_expected = start in expected
    edges, others = (expected, actual) if first_expected else (actual, expected)
    ports, here = [start], start
    while (there := edges.pop(here, None)) is not None:
        edges.pop(there, None)
        ports.append(there)
        here, edges, others = there, others, edges
    return AlternatingWalk(tuple(ports), first_expected) if len(ports) > 1 else None
