"""When nodes came back after a repair, and how soon they failed again: the hazard by days since their return."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from assay.trends.parts.part_stays import FailedPart
from assay.trends.parts.shrunken_hazard import shrink_hazard

if TYPE_CHECKING:
    from assay.trends.shapes.part_answers import HazardBandAnswer

BANDS = (0.0, 1.0, 3.0, 7.0, 14.0, 30.0, 60.0, 120.0, math.inf)
"""Days since the return, from one to the next: the bands in which the hazard of the InfiniteHBD trace changes."""
SAME_OUTAGE_DAYS = 1.0
"""Failures of a node that come so soon after each other are one."""


class ServiceReturn(NamedTuple):
    """A node that came back. `subject`: the part that was repaired, "" for the node. `repair`: of what, "" unknown."""

    at: float
    node: str
    subject: str
    repair: str


ReturnEnd = Literal["failed", "returned", "gone", ""]
"""`returned`: work by people without a failure. `gone`: the node was taken away."""


class FollowedReturn(NamedTuple):
    """A return, and how long it held. `ended`: why it holds no longer, "" if it still does."""

    returned: ServiceReturn
    days: float
    ended: ReturnEnd

    @property
    def failed(self) -> bool:
        """Whether a failure ended it."""
        return self.ended == "failed"


class HazardBand(NamedTuple):
    """Between two days after a return: node-days and failures. `usual`: failures of a node and day of the fleet."""

    low: float
    high: float
    days: float
    failures: int
    usual: float

    @property
    def times(self) -> float | None:
        """How many times what is usual that is, None where nobody knows."""
        return self.failures / self.days / self.usual if self.days and self.usual else None

    @property
    def drawn_times(self) -> float:
        """The same, drawn towards 1 where few failures were seen: for an order."""
        return shrink_hazard(self.failures, self.days, self.usual) / self.usual if self.usual else 1.0

    def as_json(self) -> HazardBandAnswer:
        """Return plain JSON data; no end is null."""
        times = None if self.times is None else round(self.times, 2)
        return {
            "from_days": self.low,
            "to_days": None if math.isinf(self.high) else self.high,
            "node_days": round(self.days, 1),
            "failures": self.failures,
            "times_usual": times,
        }


@dataclass(frozen=True, slots=True)
class ReturnHazard:
    """The hazard after returns. `usual`: failures of a node and day, of the whole fleet and time."""

    bands: tuple[HazardBand, ...]
    usual: float

    def find(self, days: float) -> float:
        """Return how many times as often as usual nodes fail so many days after their return, drawn towards 1."""
        return next(band.drawn_times for band in self.bands if days < band.high)


def merge_outages(failures: Iterable[FailedPart], returns: Iterable[ServiceReturn]) -> dict[str, list[float]]:
    """Return when each node failed, oldest first. What follows within a day, before a return, is the same failure."""
    back: dict[str, list[float]] = defaultdict(list)
    for returned in sorted(returns):
        back[returned.node].append(returned.at)
    found: dict[str, list[float]] = defaultdict(list)
    last: dict[str, float] = {}
    for one in sorted(failures):
        before = last.get(one.node, -math.inf)
        if one.at - before > SAME_OUTAGE_DAYS or count_recent(back[one.node], one.at, one.at - before):
            found[one.node].append(one.at)
        last[one.node] = one.at
    return dict(found)


def follow_returns(
    returns: Iterable[ServiceReturn],
    failures: Mapping[str, Sequence[float]],
    today: float,
    gone: Mapping[str, float] = MappingProxyType({}),
) -> list[FollowedReturn]:
    """Return how long each return held. `failures`: those of each node, oldest first. `gone`: when nodes went away."""
    by_node: dict[str, list[ServiceReturn]] = defaultdict(list)
    for one in sorted(returns):
        by_node[one.node].append(one)
    followed = []
    for node, own in by_node.items():
        times, last = failures.get(node, ()), min(today, gone.get(node, today))
        for one, after in zip(own, [*own[1:], None], strict=True):
            end = min(last, after.at) if after else last
            place = bisect_right(times, one.at)
            ended: ReturnEnd = "returned" if after else "gone" if last < today else ""
            if place < len(times) and times[place] <= end:
                followed.append(FollowedReturn(one, times[place] - one.at, "failed"))
            else:
                followed.append(FollowedReturn(one, max(0.0, end - one.at), ended))
    return sorted(followed)


def measure_return_hazard(followed: Sequence[FollowedReturn], failures: int, node_days: float) -> ReturnHazard:
    """Return the hazard of each band. `failures` of all nodes in `node_days` are what is usual."""
    usual = failures / node_days if node_days > 0 else 0.0
    bands = []
    for low, high in pairwise(BANDS):
        days = sum(min(one.days, high) - low for one in followed if one.days > low)
        failed = sum(one.failed and low < one.days <= high for one in followed)
        bands.append(HazardBand(low, high, days, failed, usual))
    return ReturnHazard(tuple(bands), usual)


def count_recent(times: Sequence[float], at: float, days: float) -> int:
    """Return how many of these times, oldest first, lie within so many days up to a moment."""
    return bisect_right(times, at) - bisect_left(times, at - days)
