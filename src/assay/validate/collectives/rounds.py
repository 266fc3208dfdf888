"""The rounds of a search: matchings of the free nodes, in which the partner changes and a faulty node stays faulty.

Screening: M1 and M2 pair nodes of different units, so that the uplinks are used; M3 pairs nodes under one leaf. No pair
runs twice. In a round, each node is in one pair at most, so all pairs run at the same time.

Confirmation: each suspect runs with another good partner, under its own leaf where there is one. A suspect is what the
screening named, its rivals, every part of a bad pair that nothing explains, and the nodes that were in a bad pair with
a faulty part: that pair says nothing about them. A suspected uplink runs in a fresh pair whose traffic crosses it.
Of parts that other traffic may explain, only those go on from C4 that are worse than any sound part should be.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.model.facts import fact
from assay.validate.collectives.fabric_map import FabricMap, FabricPart, find_node
from assay.validate.collectives.faulty_part_search import explain
from assay.validate.collectives.judging import PairObservation, is_confirmation
from assay.validate.collectives.results import Pair, make_pair

ATTEMPTS = 8
"""Rotations that are tried before a round accepts that some pairs have met."""
CONFIRMATION_ROUNDS = ("C1", "C2", "C3", "C4", "C5", "C6")
LAST_FOR_ALL = "C3"
"""The last round for all suspects."""


@fact
class PairRound:
    """One round of pairs that run at the same time."""

    name: str
    """M1 … M3 for screening, C1 … C6 for confirmation."""
    pairs: tuple[Pair, ...]
    """The pairs of nodes."""


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
    exchanged = list(pairs)
    for place, (a, b) in enumerate(exchanged):
        if (a, b) not in met and group_of[a] != group_of[b]:
            continue
        for other, (c, d) in enumerate(exchanged):
            swapped = [(make_pair(a, c), make_pair(b, d)), (make_pair(a, d), make_pair(b, c))]
            fits = [
                both
                for both in swapped
                if other != place and all(pair not in met and group_of[pair[0]] != group_of[pair[1]] for pair in both)
            ]
            if fits:
                exchanged[place], exchanged[other] = fits[0]
                break
    return [pair for pair in exchanged if pair not in met and group_of[pair[0]] != group_of[pair[1]]]


def list_suspects(observations: Sequence[PairObservation]) -> list[FabricPart]:
    """Return what the screening rounds leave suspect, nodes first."""
    explanation = explain([observation for observation in observations if not is_confirmation(observation.round)])
    named = [part for faulty in explanation.faulty for part in (faulty.part, *faulty.rivals)]
    unexplained = [part for observation in explanation.unexplained for part in observation.parts]
    explained = [part for faulty in explanation.faulty for observation in faulty.bad for part in observation.parts]
    partners = [part for part in explained if part.kind == "node"]
    parts = dict.fromkeys([*named, *unexplained, *partners])
    return sorted(parts, key=lambda part: part.kind in ("uplink", "nvlink"))


def plan_confirmation(
    fabric: FabricMap, nodes: Sequence[str], observations: Sequence[PairObservation], name: str
) -> PairRound:
    """Return a confirmation round. It has no pair if nothing is suspect, or if there is no partner."""
    suspects = list_suspects(observations)
    if name > LAST_FOR_ALL:
        suspects = [doubtful.part for doubtful in explain(observations).doubtful]
    if name == CONFIRMATION_ROUNDS[1]:  # a node may be the only way to test an uplink: they take turns
        suspects.sort(key=lambda part: part.kind not in ("uplink", "nvlink"))
    planner = _ConfirmationPlanner(fabric, nodes, observations)
    for suspect in suspects:
        planner.add_pair(suspect)
    return PairRound(name, tuple(planner.pairs))


@dataclass
class _NodeStanding:
    """How often a node was in good pairs, and in bad ones."""

    good: int = 0
    bad: int = 0


class _ConfirmationPlanner:
    """One round: the pairs so far, and who is free in it.

    Partners are nodes that the suspect has not met: those that were always good first, then those whose bad pairs
    others explain.
    """

    def __init__(self, fabric: FabricMap, nodes: Sequence[str], observations: Sequence[PairObservation]) -> None:
        self._fabric = fabric
        self._met = {observation.pair for observation in observations}
        self._standing: defaultdict[str, _NodeStanding] = defaultdict(_NodeStanding)
        for observation in observations:
            for name in observation.pair:
                self._standing[name].good += observation.verdict == "good"
                self._standing[name].bad += observation.is_bad
        self._free = dict.fromkeys(nodes)
        doubtful = _list_doubtful_nodes(observations)
        good = (name for name in nodes if self._standing[name].good and name not in doubtful)
        self._good = sorted(good, key=lambda name: self._standing[name].bad)
        self._members: Mapping[str, list[str]] = _group_by_unit(fabric, nodes)
        self._good_members: Mapping[str, list[str]] = _group_by_unit(fabric, self._good)
        self._used: set[FabricPart] = set()
        self.pairs: list[Pair] = []

    def add_pair(self, suspect: FabricPart) -> None:
        """Add a pair for a suspect, unless a pair of this round tests it, or there is no partner."""
        if suspect in self._used:
            return
        pairs = self._node_pairs(suspect) if suspect.kind in ("node", "adapter") else self._link_pairs(suspect)
        fits = (make_pair(a, b) for a, b in pairs if a in self._free and b in self._free)
        pair = next((pair for pair in fits if pair[0] != pair[1] and pair not in self._met), None)
        if pair is None:
            return
        self.pairs.append(pair)
        for name in pair:
            del self._free[name]
        self._used.update(self._fabric.list_pair_parts(*pair))
        for rail in range(self._fabric.rails):
            self._used.update(self._fabric.list_rail_parts(*pair, rail))

    def _node_pairs(self, suspect: FabricPart) -> Iterator[Pair]:
        """Yield the suspect's node with each good node, those under its own leaf first."""
        node = suspect.name if suspect.name in self._fabric.nodes else suspect.name.rpartition(" rail ")[0]
        near = self._good_members.get(self._fabric.unit_of(node), ())
        yield from ((node, other) for other in near if not self._fabric.share_domain(node, other))
        yield from ((node, other) for other in self._good)

    def _link_pairs(self, suspect: FabricPart) -> Iterator[Pair]:
        """Yield pairs that use an uplink or an NVLink domain: of good nodes first, then with a suspect."""
        if suspect.kind == "nvlink":
            inside = [name for name in self._good if self._fabric.nodes[name].domain == suspect.name]
            yield from ((a, b) for a in inside for b in inside)
            return
        leaf_rails = [
            (leaf, rail)
            for unit in self._members.values()
            for rail, leaf in enumerate(self._fabric.nodes[unit[0]].leaves)
            if suspect.name in self._fabric.uplinks.get(leaf, ())
        ]
        for leaf, rail in leaf_rails:
            senders = [name for name in self._good if self._fabric.nodes[name].leaves[rail : rail + 1] == (leaf,)]
            receivers = [
                name
                for members in self._members.values()
                for name in members
                if self._fabric.nodes[name].leaves[rail : rail + 1] not in ((leaf,), ())
                and self._fabric.find_uplink(leaf, name, rail) == suspect.name
            ]
            receivers.sort(key=lambda name: self._standing[name].bad)
            yield from ((sender, receiver) for receiver in receivers for sender in senders)


def _list_doubtful_nodes(observations: Sequence[PairObservation]) -> set[str]:
    """Return the nodes that may be faulty: named, rivals, with such a part, or in a bad pair that nothing explains."""
    explanation = explain(observations)
    parts = [part for faulty in explanation.faulty for part in (faulty.part, *faulty.rivals)]
    return {find_node(part) for part in parts} | {
        name for observation in explanation.unexplained for name in observation.pair
    }


def _group_by_unit(fabric: FabricMap, nodes: Sequence[str]) -> Mapping[str, list[str]]:
    units: defaultdict[str, list[str]] = defaultdict(list)
    for name in nodes:
        units[fabric.unit_of(name)].append(name)
    return units
