"""What a longer soak after repairs would catch, and the node-hours that it would cost.

It takes for granted that a node fails in a soak when it would have failed in service. A soak without load catches less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from assay.trends.parts.service_returns import FollowedReturn

if TYPE_CHECKING:
    from assay.trends.shapes.part_answers import SoakAnswer, SoakStepAnswer

STEPS_HOURS = (0.0, 1.0, 6.0, 24.0, 48.0, 72.0, 168.0, 336.0)
Z_90 = 1.644854
HELD_DAYS = 14.0
"""A repair that has held so long counts as good."""
ALL_REPAIRS = "all repairs"
UNKNOWN_REPAIR = "unknown"


class SoakStep(NamedTuple):
    """A soak that goes on from `low` to `high` hours: the failures that it catches, and what that costs."""

    low: float
    high: float
    caught: int
    node_hours: float

    @property
    def hours_each(self) -> float | None:
        """The node-hours for one failure that is caught, None where there is none."""
        return self.node_hours / self.caught if self.caught else None


@dataclass(frozen=True, slots=True)
class SoakCosts:
    """Returns after one class of repair. `known`: of how many it is known whether they held for two weeks."""

    repair: str
    returns: int
    known: int
    failed: int
    steps: tuple[SoakStep, ...]

    @property
    def share(self) -> tuple[float, float, float] | None:
        """The share that did not hold for two weeks, and its 90 % interval (Wilson)."""
        return find_share(self.failed, self.known) if self.known else None

    def as_json(self) -> SoakAnswer:
        """Return plain JSON data."""
        steps: list[SoakStepAnswer] = [
            {"from_hours": one.low, "to_hours": one.high, "caught": one.caught, "node_hours": round(one.node_hours, 1)}
            for one in self.steps
        ]
        return {
            "repair": self.repair,
            "returns": self.returns,
            "known": self.known,
            "failed_within_14_days": self.failed,
            "share": list(self.share) if self.share else None,
            "steps": steps,
        }


def measure_soaks(followed: Iterable[FollowedReturn]) -> list[SoakCosts]:
    """Return what each hour of soak catches and costs: of all repairs, then of each class, the most frequent first."""
    by_repair: dict[str, list[FollowedReturn]] = defaultdict(list)
    for one in followed:
        by_repair[one.returned.repair or UNKNOWN_REPAIR].append(one)
    everything = [one for own in by_repair.values() for one in own]
    if not everything:
        return []
    classes = sorted(by_repair.items(), key=lambda item: (-len(item[1]), item[0]))
    return [_measure(name, own) for name, own in [(ALL_REPAIRS, everything), *classes]]


def _measure(repair: str, followed: Sequence[FollowedReturn]) -> SoakCosts:
    known = [one for one in followed if one.failed or one.days >= HELD_DAYS]
    failed = sum(one.failed and one.days <= HELD_DAYS for one in known)
    return SoakCosts(repair, len(followed), len(known), failed, tuple(_list_steps(followed)))


def _list_steps(followed: Sequence[FollowedReturn]) -> Iterable[SoakStep]:
    spans = [(one.days * 24, one.failed) for one in followed]
    for low, high in pairwise(STEPS_HOURS):
        caught = sum(failed and low < hours <= high for hours, failed in spans)
        yield SoakStep(low, high, caught, sum(min(hours, high) - low for hours, _ in spans if hours > low))


def find_share(hits: int, of: int) -> tuple[float, float, float]:
    """Return a share and its 90 % interval (Wilson)."""
    share, square = hits / of, Z_90**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    reach = Z_90 * sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return share, max(0.0, middle - reach), min(1.0, middle + reach)
