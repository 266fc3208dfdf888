"""All stages of a search: each node alone, pairs, all nodes together, and the blocks that fail only together. Pure.

The next round follows from the seed, the settings and the results so far, so an interrupted search continues.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.validate.collectives.explanation import explain
from assay.validate.collectives.fabric_map import FabricMap, find_node
from assay.validate.collectives.gate import GATE_ROUNDS, GateFindings, judge_gate, plan_gate
from assay.validate.collectives.group_judging import (
    GroupObservation,
    GroupRule,
    WholeStage,
    observe_alone,
    observe_together,
    select_rounds,
)
from assay.validate.collectives.group_results import Group, GroupResult, GroupRound
from assay.validate.collectives.judging import SpeedRule
from assay.validate.collectives.matchings import PairRound
from assay.validate.collectives.pair_results import PairResult
from assay.validate.collectives.scale_search import VOTES, ScaleFinding, ScaleQuestion, find_next_question
from assay.validate.collectives.search import CollectiveSearch

MIN_TOGETHER = 3
"""Two nodes together are a pair."""
MIN_UNIT_BLOCKS = 4
"""With fewer units, the blocks of the scale stage are single nodes."""
MAX_RUNS = 3
"""All nodes together run so often at most, to decide whether they fail."""


class SearchResults(NamedTuple):
    """All results of a search so far."""

    pairs: Sequence[PairResult]
    groups: Sequence[GroupResult] = ()


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Which stages a search has beside the pairs. `whole`: all nodes together run `first` or `last`, or not at all."""

    gate: bool = False
    whole: WholeStage = "no"
    rule: GroupRule = field(default=GroupRule())


class Block(NamedTuple):
    """Nodes that the scale stage takes or leaves together: those of one unit, or one node."""

    name: str
    nodes: Group


class WholeFinding(NamedTuple):
    """How all nodes together ended: `good`, `bad` (in two runs), `once` (bad, then not twice), or `open`.

    `unjudged`: it ended in time, without a wrong result, but nobody knows the speed that it should have.
    """

    verdict: str
    runs: tuple[GroupObservation, ...]


@dataclass(frozen=True)
class StagedSearch:
    """One search among free nodes, with the stages that its settings ask for."""

    fabric: FabricMap
    nodes: Sequence[str]
    seed: int = 0
    rule: SpeedRule = field(default=SpeedRule())
    stages: StageSettings = field(default=StageSettings())

    def find_next_round(self, results: SearchResults, ended: Collection[str]) -> PairRound | GroupRound | None:
        """Return the next round after those that `ended`, None if the search is over."""
        known = SearchResults(results.pairs, [one for one in results.groups if one.round in ended])
        if self.stages.gate and (planned := self._plan_gate(known, ended)):
            return planned
        if self.stages.whole == "first" and not select_rounds(known.groups, "W"):
            left = self.list_partners(known)
            if len(left) >= MIN_TOGETHER:
                return GroupRound("W1", (left,))
        if self.is_over_early(known):
            return None
        pairs = self.pair_search(known).find_next_round(known.pairs, ended)
        return pairs or self._plan_together(known)

    def judge_gate(self, results: SearchResults) -> GateFindings:
        """Return what the nodes alone say."""
        return judge_gate(observe_alone(select_rounds(results.groups, "G"), self.stages.rule))

    def list_partners(self, results: SearchResults) -> Group:
        """Return the nodes that run in pairs: all that did not fail alone."""
        faulty = self.judge_gate(results).faulty
        return tuple(node for node in self.nodes if node not in faulty)

    def pair_search(self, results: SearchResults) -> CollectiveSearch:
        """Return the search in pairs."""
        return CollectiveSearch(self.fabric, self.list_partners(results), self.seed, self.rule)

    def is_over_early(self, results: SearchResults) -> bool:
        """Whether all nodes together ran first, checked, and as expected."""
        first = self._observe_together(results, self.list_partners(results))[:1]
        return self.stages.whole == "first" and any(one.verdict == "good" and one.is_checked for one in first)

    def list_survivors(self, results: SearchResults) -> Group:
        """Return the nodes that should be good together: all that are not named. Empty if a link explains failures.

        Empty too if it could not be told who makes a pair bad: then a large group would fail for that reason.
        """
        search = self.pair_search(results)
        explanation = explain(search.observe(results.pairs))
        is_link = any(one.part.kind in ("uplink", "nvlink") or one.rivals for one in explanation.faulty)
        if is_link:
            return ()
        named = {find_node(one.part) for one in explanation.faulty}
        return tuple(node for node in search.nodes if node not in named)

    def judge_whole(self, results: SearchResults) -> WholeFinding | None:
        """Return how the survivors ended together, None if they have not run."""
        first = self._observe_together(results, self.list_partners(results))
        runs = tuple(self._observe_together(results, self.list_survivors(results)) or first)
        if not runs:
            return None
        bad, ended = _count_votes(runs)
        if bad:
            return WholeFinding("bad" if bad >= VOTES else "once" if ended >= VOTES else "open", runs)
        is_good = any(one.verdict == "good" for one in runs)
        return WholeFinding("good" if is_good else "unjudged" if ended else "open", runs)

    def list_blocks(self, nodes: Sequence[str]) -> list[Block]:
        """Return the blocks of the scale stage: units, or nodes if there are few units."""
        units: dict[str, list[str]] = {}
        for node in nodes:
            units.setdefault(self.fabric.unit_of(node), []).append(node)
        if len(units) < MIN_UNIT_BLOCKS:
            return [Block(node, (node,)) for node in nodes]
        return [Block(name, tuple(members)) for name, members in units.items()]

    def ask_about_scale(self, results: SearchResults) -> ScaleQuestion | ScaleFinding | None:
        """Return the next question of the scale stage, or its finding. None if all nodes together did not fail."""
        whole, survivors = self.judge_whole(results), self.list_survivors(results)
        if whole is None or whole.verdict != "bad" or len(survivors) < MIN_TOGETHER:
            return None
        if whole.runs[0].nodes != survivors:
            return None
        observed = observe_together(select_rounds(results.groups, "S"), self.stages.rule)
        answers = [True if one.is_bad else False if one.has_ended else None for one in observed]
        return find_next_question(len(self.list_blocks(survivors)), answers)

    def _plan_gate(self, results: SearchResults, ended: Collection[str]) -> GroupRound | None:
        observations = observe_alone(select_rounds(results.groups, "G"), self.stages.rule)
        for name in GATE_ROUNDS:
            if name not in ended:
                planned = plan_gate(self.nodes, observations, name)
                return planned if planned.groups else None
        return None

    def _plan_together(self, results: SearchResults) -> GroupRound | None:
        """Return the next round after the pairs: all survivors, until it is decided whether they fail; then blocks."""
        if self.stages.whole == "no":
            return None
        survivors = self.list_survivors(results)
        if len(survivors) < MIN_TOGETHER:
            return None
        own = self._observe_together(results, survivors)
        bad, ended = _count_votes(own)
        if not (bad >= VOTES or ended >= VOTES or (ended and not bad) or len(own) >= MAX_RUNS):
            number = 1 + len(select_rounds(results.groups, "W"))
            return GroupRound(f"W{number}", (survivors,))
        question = self.ask_about_scale(results)
        if not isinstance(question, ScaleQuestion):
            return None
        blocks = self.list_blocks(survivors)
        nodes = tuple(node for number in question.blocks for node in blocks[number].nodes)
        return GroupRound(f"S{1 + len(select_rounds(results.groups, 'S'))}", (nodes,))

    def _observe_together(self, results: SearchResults, nodes: Group) -> list[GroupObservation]:
        own = [one for one in select_rounds(results.groups, "W") if one.nodes == nodes]
        return observe_together(own, self.stages.rule)


def _count_votes(runs: Sequence[GroupObservation]) -> tuple[int, int]:
    """Return how many runs were bad, and how many ended well and were not slow."""
    bad = sum(one.is_bad for one in runs)
    return bad, sum(one.has_ended and not one.is_bad for one in runs)
