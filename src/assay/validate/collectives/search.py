"""The search for faulty parts: screening, then, if a pair was bad, up to three rounds of confirmation. Pure.

The next round depends on the seed and on the results so far only, so an interrupted search continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from assay.validate.collectives.confirmation import CONFIRMATION_ROUNDS, plan_confirmation
from assay.validate.collectives.fabric_map import FabricMap
from assay.validate.collectives.judging import PairObservation, SpeedRule
from assay.validate.collectives.matchings import PairRound, plan_screening
from assay.validate.collectives.pair_results import PairResult
from assay.validate.collectives.shaky_nodes import observe_by_node


@dataclass(frozen=True)
class CollectiveSearch:
    """One search among free nodes. `seed` chooses the partners; `rule` says which pairs are slow."""

    fabric: FabricMap
    nodes: Sequence[str]
    seed: int = 0
    rule: SpeedRule = field(default=SpeedRule())

    @cached_property
    def screening(self) -> Sequence[PairRound]:
        """The rounds that are always run."""
        return plan_screening(self.fabric, self.nodes, self.seed)

    def observe(self, results: Collection[PairResult]) -> list[PairObservation]:
        """Return what the results say about the parts."""
        return observe_by_node(self.fabric, results, self.rule)

    def find_next_round(self, results: Collection[PairResult], ended: Collection[str]) -> PairRound | None:
        """Return the next round after those that `ended`, None if the search is over."""
        for planned in self.screening:
            if planned.name not in ended:
                return planned
        names = [name for name in CONFIRMATION_ROUNDS if name not in ended]
        if not names:
            return None
        before = [one for one in results if one.round != names[0]]
        observations = [one for one in self.observe(before) if one.round in ended]
        confirmation = plan_confirmation(self.fabric, self.nodes, observations, names[0])
        return confirmation if confirmation.pairs else None
