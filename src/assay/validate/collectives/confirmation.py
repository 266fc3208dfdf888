"""The confirmation rounds: each suspect runs with another good partner, under its own leaf where there is one.

A suspect is what the screening named, its rivals, every part of a bad pair that nothing explains, and the nodes that
were in a bad pair with a faulty part: that pair says nothing about them. A suspected uplink runs in a fresh pair whose
traffic crosses it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.validate.collectives.explanation import explain
from assay.validate.collectives.fabric_map import FabricMap, FabricPart, find_node
from assay.validate.collectives.judging import PairObservation, is_confirmation
from assay.validate.collectives.matchings import PairRound
from assay.validate.collectives.pair_results import Pair, make_pair

CONFIRMATION_ROUNDS = ("C1", "C2", "C3")


def list_suspects(observations: Sequence[PairObservation]) -> list[FabricPart]:
    """Return what the screening rounds leave suspect, nodes first."""
    explanation = explain([one for one in observations if not is_confirmation(one.round)])
    named = [part for faulty in explanation.faulty for part in (faulty.part, *faulty.rivals)]
    unexplained = [part for one in explanation.unexplained for part in one.parts]
    explained = [part for faulty in explanation.faulty for one in faulty.bad for part in one.parts]
    partners = [part for part in explained if part.kind == "node"]
    parts = dict.fromkeys([*named, *unexplained, *partners])
    return sorted(parts, key=lambda part: part.kind in ("uplink", "nvlink"))


def plan_confirmation(
    fabric: FabricMap, nodes: Sequence[str], observations: Sequence[PairObservation], name: str
) -> PairRound:
    """Return a confirmation round. It has no pair if nothing is suspect, or if there is no partner."""
    suspects = list_suspects(observations)
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
        self._met = {one.pair for one in observations}
        self._standing: defaultdict[str, _NodeStanding] = defaultdict(_NodeStanding)
        for one in observations:
            for name in one.pair:
                self._standing[name].good += one.verdict == "good"
                self._standing[name].bad += one.is_bad
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
        self._used |= {*self._list_parts(pair)}

    def _list_parts(self, pair: Pair) -> Iterator[FabricPart]:
        yield from self._fabric.list_pair_parts(*pair)
        for rail in range(self._fabric.rails):
            yield from self._fabric.list_rail_parts(*pair, rail)

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
    return {find_node(part) for part in parts} | {name for one in explanation.unexplained for name in one.pair}


def _group_by_unit(fabric: FabricMap, nodes: Sequence[str]) -> Mapping[str, list[str]]:
    units: defaultdict[str, list[str]] = defaultdict(list)
    for name in nodes:
        units[fabric.unit_of(name)].append(name)
    return units
