"""Which part was at which place, from when to when, and when parts failed. Times are days since 1970, UTC."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from assay.trends.parts.survival_curves import Life

NODE_KIND = "node"
DAY_S = 86_400


class PartStay(NamedTuple):
    """A part at a place of a node. `subject` "": the node itself. `until`: math.inf while it lasts.

    `kind` is what sort of part it is, such as `gpu`. `batch` is the delivery that brought it, "" where nobody knows.
    """

    node: str
    subject: str
    kind: str
    serial: str
    sku: str
    batch: str
    rack: str
    position: str
    since: float
    until: float


class FailedPart(NamedTuple):
    """A part that failed. `subject` "": the node itself."""

    at: float
    node: str
    subject: str
    fault: str


@dataclass(frozen=True, slots=True)
class FailureTimes:
    """When each place failed, oldest first."""

    times: Mapping[tuple[str, str], Sequence[float]]

    @classmethod
    def collect(cls, failures: Iterable[FailedPart]) -> FailureTimes:
        """Return them by node and subject."""
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for one in failures:
            found[one.node, one.subject].append(one.at)
        return cls({place: sorted(times) for place, times in found.items()})

    def list_within(self, stay: PartStay) -> Sequence[float]:
        """Return the failures during a stay. One at the moment of an exchange belongs to the part that goes."""
        known = self.times.get((stay.node, stay.subject), ())
        return known[bisect_right(known, stay.since) : bisect_right(known, stay.until)]


def days_of(moment: datetime) -> float:
    """Return a time as days since 1970."""
    return moment.timestamp() / DAY_S


def guess_kind(subject: str) -> str:
    """Return the sort of part that a subject names: its name without numbers."""
    return subject.rstrip("0123456789_-.:/") or (subject or NODE_KIND)


def list_lives(stays: Iterable[PartStay], failures: FailureTimes, today: float) -> Iterator[tuple[PartStay, Life]]:
    """Yield each stay with what it says of its part's life: until the part's first failure, or until today.

    Ages are days of service since the part was first seen here; days elsewhere, or on a shelf, do not count.
    """
    by_part: dict[tuple[str, ...], list[PartStay]] = defaultdict(list)
    for stay in stays:
        by_part[(stay.serial, stay.kind) if stay.serial else (stay.node, stay.subject, str(stay.since))].append(stay)
    for own in by_part.values():
        yield from _follow_part(sorted(own, key=lambda stay: stay.since), failures, today)


def _follow_part(stays: Sequence[PartStay], failures: FailureTimes, today: float) -> Iterator[tuple[PartStay, Life]]:
    age, reached = 0.0, -math.inf
    for stay in stays:
        begun, until = max(stay.since, reached), min(stay.until, today)
        failed = next((at for at in failures.list_within(stay) if begun < at <= until), None)
        ended = until if failed is None else failed
        if ended > begun:
            yield stay, Life(age, age + ended - begun, failed is not None)
            age, reached = age + ended - begun, ended
        if failed is not None:
            return
