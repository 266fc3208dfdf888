"""Where parts fail more often than elsewhere: the hazard of the last months by delivery and position.

For people who plan, and for the order of idle tests. It says nothing about one part, so it is no reason for a drain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from assay.model.specs.trend_rules import PositionDetector
from assay.trends.parts.part_stays import FailureTimes, PartStay
from assay.trends.parts.shrunken_hazard import shrink_hazard

if TYPE_CHECKING:
    from assay.trends.shapes.warning_answers import PositionAnswer

LEAST_FAILURES, LEAST_TIMES = 3, 2.0
"""From how many failures on, and how many times the usual hazard, a position is told to people."""


class PositionGroup(NamedTuple):
    """Parts of one kind and delivery at one position. `rack` "": in all racks."""

    kind: str
    sku: str
    batch: str
    position: str
    rack: str = ""


_TRAITS = attrgetter(*PositionGroup._fields)


class PositionHazard(NamedTuple):
    """How often a group fails: `hazard` a day, drawn to what is usual, and as `times` what is usual for its kind."""

    group: PositionGroup
    parts: int
    days: float
    failures: int
    hazard: float
    times: float

    def as_json(self) -> PositionAnswer:
        """Return plain JSON data, as the edge has it."""
        group = self.group
        return {
            "kind": group.kind,
            "sku": group.sku,
            "batch": group.batch,
            "position": group.position,
            "rack": group.rack,
            "parts": self.parts,
            "failures": self.failures,
            "part_days": round(self.days, 1),
            "failures_per_1000_days": round(1000 * self.hazard, 4),
            "times_usual": round(self.times, 2),
            "because": self.because,
        }

    @property
    def because(self) -> str:
        """Return the reason, in a sentence."""
        where = f"position {self.group.position}" if self.group.position else "positions without a name"
        place = f"{where} of rack {self.group.rack}" if self.group.rack else where
        what = " ".join(filter(None, (self.group.kind, self.group.sku, self.group.batch)))
        seen = f"{self.failures} failures in {self.days:,.0f} part-days"
        return f"{what} at {place}: {seen}, {self.times:.1f} times what is usual for {self.group.kind}"


@dataclass(slots=True)
class _Count:
    parts: int = 0
    days: float = 0.0
    failures: int = 0

    def add(self, days: float, failures: int, parts: int = 0) -> None:
        self.parts, self.days, self.failures = self.parts + parts, self.days + days, self.failures + failures


@dataclass(frozen=True, slots=True)
class PositionHazards:
    """The hazards of all positions, those with their rack drawn to those of all racks, and those to their kind's."""

    by_group: Mapping[PositionGroup, PositionHazard]

    def find(self, stay: PartStay) -> float:
        """Return how many times as often as usual parts fail where this one is; 1 where nothing is known."""
        group = PositionGroup._make(_TRAITS(stay))
        known = self.by_group.get(group) or self.by_group.get(group._replace(rack=""))
        return known.times if known else 1.0

    def rank_nodes(self, stays: Iterable[PartStay]) -> dict[str, float]:
        """Return for each node with a high position how many times as often as usual parts fail at the worst."""
        worst: dict[str, float] = {}
        for stay in stays:
            if (times := self.find(stay)) >= LEAST_TIMES:
                worst[stay.node] = max(worst.get(stay.node, 0.0), round(times, 2))
        return worst

    def list_high(self, most: int = 20) -> list[PositionHazard]:
        """Return what people are told, the highest first. A rack is told where it is worse than its position alone."""
        high = [one for one in self.by_group.values() if one.failures >= LEAST_FAILURES and one.times >= LEAST_TIMES]
        told = [one for one in high if not one.group.rack or one.times >= LEAST_TIMES * self._of_all_racks(one)]
        return sorted(told, key=lambda one: (-one.times, one.group))[:most]

    def _of_all_racks(self, one: PositionHazard) -> float:
        return self.by_group[one.group._replace(rack="")].times


def rank_positions(
    stays: Iterable[PartStay], failures: FailureTimes, today: float, rules: PositionDetector
) -> PositionHazards:
    """Return the hazards of the last days, by kind, SKU, delivery and position, and by rack below that."""
    racks: dict[tuple[str, ...], _Count] = defaultdict(_Count)
    for stay in stays:
        begun, until = max(stay.since, today - rules.days), min(stay.until, today)
        if until <= begun:
            continue
        failed = sum(begun < at <= until for at in failures.list_within(stay))
        racks[_TRAITS(stay)].add(until - begun, failed, parts=stay.until > today)
    counts: dict[PositionGroup, _Count] = defaultdict(_Count)
    for traits, count in racks.items():
        group = PositionGroup(*traits)
        for one in {group, group._replace(rack="")}:
            counts[one].add(count.days, count.failures, count.parts)
    return PositionHazards(_shrink_all(counts, rules.prior))


def _shrink_all(counts: Mapping[PositionGroup, _Count], prior: float) -> dict[PositionGroup, PositionHazard]:
    usual = _find_usual([(group.kind, count) for group, count in counts.items() if not group.rack])
    found: dict[PositionGroup, PositionHazard] = {}
    for group, count in sorted(counts.items(), key=lambda item: bool(item[0].rack)):
        base = usual[group.kind]
        near = found[group._replace(rack="")].hazard if group.rack else base
        hazard = shrink_hazard(count.failures, count.days, near, prior)
        times = hazard / base if base else 1.0
        found[group] = PositionHazard(group, count.parts, count.days, count.failures, hazard, times)
    return found


def _find_usual(counts: Sequence[tuple[str, _Count]]) -> dict[str, float]:
    """Return failures a day of all parts of each kind."""
    sums: dict[str, _Count] = defaultdict(_Count)
    for kind, one in counts:
        sums[kind].add(one.days, one.failures)
    return {kind: one.failures / one.days for kind, one in sums.items()}
