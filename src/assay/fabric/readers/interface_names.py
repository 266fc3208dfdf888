r"""Numbers the ports of Ethernet switches as their faceplates do, from the names that operating systems give them.

Cages count from 1. The ports of split cages count singly, as in a design with `split`: where cages are split in two,
`swp1s0` is port 1, `swp1s1` port 2, and `swp2`, split or whole, port 3.

| names | of |
|---|---|
| `swp1`, `swp1s0` | Cumulus Linux |
| `Ethernet0`, `Ethernet8` | SONiC: the first lane, counted over all cages |
| `etp1`, `etp1a`, `Eth1`, `Eth1/2`, `Eth49/1(Port49)` | SONiC's aliases |
| `Ethernet1`, `Ethernet17/5` | EOS: the cage, and the lane in it |
| `Ethernet1/17/2`, `et-0/0/17:1`, `ethernet-1/17` | NX-OS, Junos, SR Linux: slots, the cage, and the part of it |

Numbers in front that are the same in all names are slots. Any other name, such as `eth0` or `ens1f0np0`, is of no
switch port. Sources: Cumulus Linux user guide, switch port attributes; SONiC, port_config.ini; vendors' manuals.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cached_property
from math import gcd
from typing import NamedTuple

LANE = re.compile(r"Ethernet(\d{1,4})")
PANEL = re.compile(r"(?:swp(\d{1,3})(?:s(\d))?|etp(\d{1,3})([a-h])?)")
SLOTS = re.compile(r"(?:Eth|Ethernet|ethernet-|et-|xe-|\w+Gig\w*)(\d{1,4}(?:[/:]\d{1,4})*)(?:\(.*\))?")
MAX_LANES = 8
"""Lanes of a cage (QSFP-DD, OSFP)."""


class Cage(NamedTuple):
    """The place of a port: its cage, and which part of it, as written; -1 for a whole cage."""

    number: int
    part: int = -1


def is_switch_port(name: str) -> bool:
    """Return whether a name is one that operating systems of switches give to a port."""
    return any(form.fullmatch(name) for form in (LANE, PANEL, SLOTS))


class InterfaceNumbers:
    """The port numbers of the names of one discovery. `aliases` are pairs of a name and another one of the same port.

    `split` is in how many parts the most split cage is; 0 where SONiC's names alone do not tell.
    """

    def __init__(self, names: Iterable[str], aliases: Iterable[tuple[str, str]] = ()) -> None:
        every = {name for name in names if is_switch_port(name)}
        self._lanes = {name: int(match[1]) for name in every if (match := LANE.fullmatch(name))}
        if self._lanes and min(self._lanes.values()) > 0 and gcd(*self._lanes.values()) == 1:
            self._lanes = {}  # these count cages, as EOS does
        self._cages = _find_cages(every - self._lanes.keys())
        self._aliases = Counter(pair for pair in aliases if pair[0] in self._lanes and pair[1] in self._cages)
        self._parts = sorted({max(cage.part, self._first_part) for cage in self._cages.values()})

    @cached_property
    def split(self) -> int:
        """In how many parts the most split cage is, 0 if unknown."""
        by_lane = self._lanes_of_cage // self._lane_step if self._lanes_of_cage else 0
        return max(len(self._parts), by_lane) if self._cages or by_lane else 0

    def find(self, name: str) -> int:
        """Return the number of a port, 0 for a name that is of no switch port."""
        return self._numbers.get(name, 0)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: self._count(name) for name in (*self._lanes, *self._cages)}

    def _count(self, name: str) -> int:
        if name in self._lanes:
            lane, of_cage = self._lanes[name], self._lanes_of_cage
            if not of_cage:
                return lane // self._lane_step + 1
            return lane // of_cage * self.split + lane % of_cage // self._lane_step + 1
        cage = self._cages[name]
        return (cage.number - 1) * self.split + self._parts.index(max(cage.part, self._first_part)) + 1

    @cached_property
    def _first_part(self) -> int:
        return min((cage.part for cage in self._cages.values() if cage.part >= 0), default=-1)

    @cached_property
    def _lane_step(self) -> int:
        return gcd(*self._lanes.values(), self._lanes_of_cage or MAX_LANES) if self._lanes else 1

    @cached_property
    def _lanes_of_cage(self) -> int:
        """How many lanes a cage has, by the names of which an alias is known; 0 without any."""
        votes: Counter[int] = Counter()
        for (name, alias), times in self._aliases.items():
            before = self._cages[alias].number - 1
            if before and self._lanes[name] // before in (1, 2, 4, MAX_LANES):
                votes[self._lanes[name] // before] += times
        return votes.most_common(1)[0][0] if votes else 0


def _find_cages(names: Collection[str]) -> dict[str, Cage]:
    """Return the cage of each name, counted from 1."""
    cages: dict[str, Cage] = {}
    slots: dict[str, list[int]] = {}
    for name in names:
        if match := PANEL.fullmatch(name):
            part = int(match[2]) if match[2] else ord(match[4]) - ord("a") if match[4] else -1
            cages[name] = Cage(int(match[1] or match[3]), part)
        elif match := SLOTS.fullmatch(name):
            slots[name] = [int(number) for number in re.split("[/:]", match[1])]
    for depth in {len(numbers) for numbers in slots.values()}:
        own = {name: numbers for name, numbers in slots.items() if len(numbers) == depth}
        first = 0
        while first < depth - 1 and len({numbers[first] for numbers in own.values()}) == 1:
            first += 1
        cages |= {name: Cage(numbers[first], *numbers[first + 1 : first + 2]) for name, numbers in own.items()}
    from_0 = any(cage.number == 0 for cage in cages.values())
    return {name: cage._replace(number=cage.number + from_0) for name, cage in cages.items()}
