"""Tells a faulty part from other traffic: how likely a run is slow though its parts are sound, and what is beyond that.

The other runs of the search say how likely. A run is a witness if each of its parts was good in at least half of its
other runs; a slow witness is slow by traffic. The chance of a run is the share of slow witnesses: in the search, in its
round, or in its units, whichever is largest. What a run itself showed does not make it a witness: so the share is not
too small by the choice of the runs, and faults hardly count as traffic. Of the part that is judged, the runs before
count in any case, as they would be traffic too if the part was sound.

The evidence against a part is how many times likelier its runs are if it is slow in an unknown share of them, rather in
many than in few, than by these chances. On a sound part, this is above E with a probability of 1/E at most, whenever
one looks (Ville's inequality). So of so many parts, at most `parts / E` look that bad by traffic alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

from assay.validate.collectives.judging import BAD, HARD
from assay.validate.collectives.results import PairVerdict

MOST_BY_CHANCE = 0.05
"""A part is named if in one search of twenty at most, one of its sound parts would look so bad."""
OPEN_BY_CHANCE = 1.0
"""A part stays open if less than one sound part would look so bad, but more than that."""
ASSUMED_SLOW, ASSUMED_RUNS = 0.5, 10.0
"""Until a search has runs of its own, one run in twenty counts as slow by traffic; ten runs outweigh that."""
MIN_HARD = 2
"""So many runs that were wrong, hung or died are enough: traffic does not cause them."""


class Trial(NamedTuple):
    """A run: the parts that it used, where and when (its round, its units), and how it ended."""

    parts: Sequence[Hashable]
    places: Sequence[Hashable]
    verdict: PairVerdict

    @property
    def is_bad(self) -> bool:
        """Whether it counts against its parts."""
        return self.verdict in BAD


class Traffic:
    """What the runs of one search say about other traffic."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = trials
        bad: Counter[Hashable] = Counter()
        runs: Counter[Hashable] = Counter()
        for trial in trials:
            runs.update(trial.parts if trial.verdict != "unknown" else ())
            bad.update(trial.parts if trial.is_bad else ())
        self._parts = len(runs)
        self._witnesses = {
            number: trial
            for number, trial in enumerate(trials)
            if trial.verdict != "unknown"
            and all(2 * (bad[part] - trial.is_bad) <= runs[part] - 1 for part in trial.parts)
        }
        self._slow, self._runs = _count(self._witnesses.values())

    def count_by_chance(self, own: Collection[int]) -> float:
        """Return how many sound parts would look as bad by traffic alone as the part with these runs."""
        trials = [self._trials[number] for number in own if self._trials[number].verdict != "unknown"]
        if sum(trial.verdict in HARD for trial in trials) >= MIN_HARD:
            return 0.0
        own_slow, own_runs = _count(self._witnesses[number] for number in own if number in self._witnesses)
        slow, runs = self._slow - own_slow, self._runs - own_runs
        bad, by_chance = 0, 0.0
        for trial in trials:
            usual = (slow[""] + ASSUMED_SLOW) / (runs[""] + ASSUMED_RUNS)
            local = ((slow[place] + ASSUMED_RUNS * usual) / (runs[place] + ASSUMED_RUNS) for place in trial.places)
            chance = max([usual, *local])
            bad += trial.is_bad
            by_chance += math.log(chance if trial.is_bad else 1 - chance)
            runs[""] += 1
            slow[""] += trial.is_bad
        good = len(trials) - bad
        # the share q has the density 2q: the integral of 2q · q^bad · (1 - q)^good
        if_faulty = math.log(2) + math.lgamma(bad + 2) + math.lgamma(good + 1) - math.lgamma(bad + good + 3)
        return self._parts * math.exp(min(by_chance - if_faulty, 0.0))


def _count(trials: Iterable[Trial]) -> tuple[Counter[Hashable], Counter[Hashable]]:
    """Return the slow runs and all runs by place; "" is everywhere."""
    slow: Counter[Hashable] = Counter()
    runs: Counter[Hashable] = Counter()
    for trial in trials:
        places = ("", *trial.places)
        runs.update(places)
        slow.update(places if trial.verdict == "slow" else ())
    return slow, runs
