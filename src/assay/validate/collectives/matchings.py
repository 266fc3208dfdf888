"""The screening rounds: matchings of the free nodes, in which the partner changes and a faulty node stays faulty.

M1 and M2 pair nodes of different units, so that the uplinks are used; M3 pairs nodes under one leaf. No pair runs
twice. In a round, each node is in one pair at most, so all pairs run at the same time.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from assay.validate.collectives.fabric_map import FabricMap
from assay.validate.collectives.pair_results import Pair, make_pair

ATTEMPTS = 8
"""Rotations that are tried before a round accepts that some pairs have met."""


class PairRound(NamedTuple):
    """One round: its name (M1 … M3, C1 … C3), and the pairs that run in it at the same time."""

    name: str
    pairs: tuple[Pair, ...]


def plan_screening(fabric: FabricMap, nodes: Sequence[str], seed: int) -> list[PairRound]:
    """Return the three screening rounds. A round without a pair is left out: two nodes have one round only."""
    met: set[Pair] = set()
    rounds = []
    for name in ("M1", "M2", "M3"):
        chance = random.Random(f"{seed} {name}")  # noqa: S311 — a schedule, no secret
        pairs = _match_within_units(fabric, nodes, met, chance) if name == "M3" else []
        pairs = pairs or _match(fabric, {fabric.unit_of(node): [] for node in nodes}, nodes, met, chance)
        met |= set(pairs)
        if pairs:
            rounds.append(PairRound(name, tuple(pairs)))
    return rounds


def _match(
    fabric: FabricMap, units: Mapping[str, list[str]], nodes: Sequence[str], met: set[Pair], chance: random.Random
) -> list[Pair]:
    """Pair nodes of different units; those of a unit that is larger than all others together, among themselves."""
    members = {unit: list(names) for unit, names in units.items()}
    for node in nodes:
        members[fabric.unit_of(node)].append(node)
    pairs = _pair_apart(list(members.values()), met, chance)
    paired = {node for pair in pairs for node in pair}
    rest = [node for node in nodes if node not in paired]
    return pairs + _match_within_units(fabric, rest, met | set(pairs), chance)


def _match_within_units(fabric: FabricMap, nodes: Sequence[str], met: set[Pair], chance: random.Random) -> list[Pair]:
    """Pair nodes under one leaf, where possible not over NVLink, which passes the leaf by."""
    units: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        units[fabric.unit_of(node)].append(node)
    pairs: list[Pair] = []
    for members in units.values():
        apart = _pair_apart(_group(members, lambda name: fabric.nodes[name].domain or name), met, chance)
        paired = {node for pair in apart for node in pair}
        singles = [[node] for node in members if node not in paired]
        pairs += apart + _pair_apart(singles, met | set(apart), chance)
    return pairs


def _group(names: Sequence[str], key: Callable[[str], str]) -> list[list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[key(name)].append(name)
    return list(groups.values())


def _pair_apart(groups: list[list[str]], met: set[Pair], chance: random.Random) -> list[Pair]:
    """Pair members of different groups so that as many as possible have a partner that they have not met."""
    best: list[Pair] = []
    for _ in range(ATTEMPTS):
        drawn = _draw(groups, chance)
        pairs = _exchange_partners(drawn, met, {name: number for number, group in enumerate(groups) for name in group})
        if len(pairs) > len(best) or not best:
            best = pairs
        if len(pairs) == len(drawn):
            break
    return best


def _draw(groups: list[list[str]], chance: random.Random) -> list[Pair]:
    """Return pairs of different groups: everybody is paired with who stands half of all further on.

    Groups stand one after the other, each rotated by chance. No group is longer than half of the row: of a group that
    is larger than all others together, only as many members stand in it as the others have.
    """
    rotated = [group[(turn := chance.randrange(len(group))) :] + group[:turn] for group in groups if group]
    chance.shuffle(rotated)
    rotated.sort(key=len, reverse=True)
    others = sum(map(len, rotated[1:]))
    if rotated and len(rotated[0]) > others:
        rotated[0] = rotated[0][:others]
    tail = rotated[1:]
    chance.shuffle(tail)
    row = [name for group in [*rotated[:1], *tail] for name in group]
    if len(row) % 2:
        row.pop(chance.randrange(len(row)))
    half = len(row) // 2
    return [make_pair(row[place], row[place + half]) for place in range(half)]


def _exchange_partners(pairs: list[Pair], met: set[Pair], group_of: Mapping[str, int]) -> list[Pair]:
    """Return the pairs with other partners for those who have met, without pairs for whom there is no other partner."""
    found = list(pairs)
    for place, (a, b) in enumerate(found):
        if (a, b) not in met and group_of[a] != group_of[b]:
            continue
        for other, (c, d) in enumerate(found):
            swapped = [(make_pair(a, c), make_pair(b, d)), (make_pair(a, d), make_pair(b, c))]
            fits = [
                both
                for both in swapped
                if other != place and all(one not in met and group_of[one[0]] != group_of[one[1]] for one in both)
            ]
            if fits:
                found[place], found[other] = fits[0]
                break
    return [pair for pair in found if pair not in met and group_of[pair[0]] != group_of[pair[1]]]
