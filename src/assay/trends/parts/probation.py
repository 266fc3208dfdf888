"""Nodes that came back from a repair lately: for some days they are tested first while they are idle.

Time since the return says more than a lasting label: a third of repairs do not hold for two weeks, and what has held
that long is as good as others (the public InfiniteHBD trace, docs/trends.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from assay.model.specs.trend_rules import ReturnDetector
from assay.trends.parts.service_returns import FollowedReturn, ReturnHazard, ServiceReturn, count_recent

if TYPE_CHECKING:
    from assay.trends.shapes.warning_answers import ProbationAnswer

COUNTED_DAYS = 30.0
"""Over so many days returns are counted."""
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Probation:
    """A node on probation. `number`: which return in 30 days it is. `times`: how often nodes fail so soon, to usual."""

    returned: ServiceReturn
    days: float
    number: int
    until: datetime
    times: float

    @property
    def because(self) -> str:
        """Return the reason, in a sentence."""
        repair = f"repair ({self.returned.repair})" if self.returned.repair else "repair"
        number = f", {_format_ordinal(self.number)} in {COUNTED_DAYS:.0f} d" if self.number > 1 else ""
        probation = f"on probation until {self.until:%m-%d}, tested first"
        return f"back {_format_span(self.days)} after {repair}{number}: {probation}"

    def as_json(self) -> ProbationAnswer:
        """Return plain JSON data, as the edge has it."""
        returned = self.returned
        return {
            "node": returned.node,
            "subject": returned.subject,
            "repair": returned.repair,
            "returned": find_moment(returned.at).isoformat(timespec="seconds"),
            "days": round(self.days, 2),
            "returns_in_30_days": self.number,
            "until": self.until.isoformat(timespec="seconds"),
            "times_usual": round(self.times, 2),
            "because": self.because,
        }


def list_probation(
    followed: Iterable[FollowedReturn], today: float, rules: ReturnDetector, hazard: ReturnHazard
) -> list[Probation]:
    """Return the nodes on probation, in the order in which to test them: who most often fails so soon stands first.

    One that has failed again, or is gone, is not on probation.
    """
    days = float(rules.probation_days)
    by_node: dict[str, list[FollowedReturn]] = defaultdict(list)
    for one in sorted(followed):
        by_node[one.returned.node].append(one)
    found = []
    for own in by_node.values():
        last, age = own[-1], today - own[-1].returned.at
        if age < days and not last.ended:
            number = count_recent([one.returned.at for one in own], last.returned.at, COUNTED_DAYS)
            until = find_moment(last.returned.at) + timedelta(days=days)
            found.append(Probation(last.returned, age, number, until, hazard.find(age)))
    return sorted(found, key=lambda one: (-one.times, -one.number, one.days, one.returned.node))


def find_moment(days: float) -> datetime:
    """Return the time that is so many days after 1970."""
    return _EPOCH + timedelta(days=days)


def _format_span(days: float) -> str:
    return f"{days:.0f} d" if days >= 1 else f"{days * 24:.0f} h"


def _format_ordinal(number: int) -> str:
    return f"{number}{'th' if 10 <= number % 100 <= 20 else _ORDINALS.get(number % 10, 'th')}"
