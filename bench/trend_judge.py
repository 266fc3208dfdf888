"""How good warnings were, by the truth of a planted world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from bench.trend_worlds import World

Series = tuple[int, int]
"""A node and a measurement, by number."""
QUIET_DAYS = 30
"""A warning of a part that comes within so many days of its last new one is the same warning."""


@dataclass(frozen=True)
class Judgement:
    """What came of the warnings of some worlds. `leads`: days from each first warning to its failure, at least 1."""

    foreseeable: int
    abrupt: int
    leads: tuple[int, ...]
    false: int
    real: int
    node_days: int

    @property
    def recall(self) -> float:
        """The share of the failures with a drift that were warned of."""
        return len(self.leads) / max(1, self.foreseeable)

    @property
    def recall_of_all(self) -> float:
        """The share of all failures that were warned of; abrupt ones have no sign."""
        return len(self.leads) / max(1, self.foreseeable + self.abrupt)

    @property
    def false_rate(self) -> float:
        """False warnings per 1,000 nodes and day."""
        return 1000 * self.false / max(1, self.node_days)

    @property
    def precision(self) -> float:
        """The share of the warnings whose part had a drift."""
        return self.real / max(1, self.real + self.false)

    @property
    def lead(self) -> tuple[float, float]:
        """Days from the warning to the failure: the median, and what nine in ten exceed."""
        if len(self.leads) < 2:
            return (0.0, 0.0)
        return median(self.leads), quantiles(self.leads, n=10, method="inclusive")[0]


def judge_warnings(world: World, days: Sequence[int], named: Mapping[int, Iterable[Series]]) -> Judgement:
    """Judge what was `named` on each of the `days` that were asked, by part: all of its measurements may get worse.

    A series of the rack that warms is no false warning. Only failures after the first day count.
    """
    drifts = {drift.node: drift for drift in world.drifts}
    warmed = world.find_warmed()
    last: dict[int, int] = {}
    leads: dict[int, int] = {}
    real = false = 0
    for day in sorted(days):
        for node in {series[0] for series in named.get(day, ()) if series not in warmed}:
            is_new = day - last.get(node, -QUIET_DAYS) >= QUIET_DAYS
            last[node] = day if is_new else last[node]
            drift = drifts.get(node)
            goes_on = drift is not None and drift.onset <= day and (drift.fails is None or day <= drift.fails)
            real, false = real + (is_new and goes_on), false + (is_new and not goes_on)
            if drift is not None and goes_on and drift.fails is not None and day < drift.fails:
                leads.setdefault(node, drift.fails - day)
    failures = [drift for drift in world.drifts if drift.fails is not None and drift.fails > days[0]]
    abrupt = sum(day > days[0] for _, day in world.abrupt)
    return Judgement(
        len(failures), abrupt, tuple(sorted(leads.values())), false, real, world.nodes * (days[-1] - days[0])
    )


def add_judgements(several: Sequence[Judgement]) -> Judgement:
    """Return the judgement of several worlds together."""
    return Judgement(
        sum(one.foreseeable for one in several),
        sum(one.abrupt for one in several),
        tuple(sorted(lead for one in several for lead in one.leads)),
        sum(one.false for one in several),
        sum(one.real for one in several),
        sum(one.node_days for one in several),
    )
