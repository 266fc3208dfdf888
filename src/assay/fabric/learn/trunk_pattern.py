"""How the cables between two tiers lie on the ports of the lower switch, by majority."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from assay.fabric.learn.majority_votes import find_mode, find_usual_range

TrunkCables = Collection[list[tuple[int, int]]]
"""For each pair of switches, the ports of their cables: at the lower switch, and at the upper one."""

SHARE_OF_GROWN = 0.2
"""Ports that lead to units which only some groups of switches have are used less often. A stray is used once."""


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
