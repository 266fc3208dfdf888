"""Whether what a part read in its burn-in foretells that it fails early: ranks in its delivery against failures.

There is no public evidence that it does. Until a fleet's own history shows it, an odd rank only means "tested first".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from assay.trends.parts.acceptance_readings import MEASURES, Acceptance
from assay.trends.parts.log_rank import compare_groups
from assay.trends.parts.part_stays import FailureTimes, PartStay, guess_kind
from assay.trends.parts.survival_curves import Life, SurvivalPoint, estimate_survival

if TYPE_CHECKING:
    from assay.trends.shapes.part_answers import MeasureAnswer, QuarterAnswer, TestedFirstAnswer, TrendsBurnInAnswer

EARLY_DAYS = 90.0
QUARTERS = 4
LEAST_DELIVERY = 8
"""A delivery with fewer parts of a kind has no quarters."""
MOST_P, LEAST_FAILURES = 0.01, 20
ODD_RANK = 0.95


class AcceptedPart(NamedTuple):
    """A part with its delivery, its life in the first 90 days, and its rank by measure: 0 the best, 1 the worst."""

    acceptance: Acceptance
    delivery: str
    life: Life
    ranks: Mapping[str, float]

    @property
    def odd(self) -> list[str]:
        """The measures in which it is among the worst of its delivery."""
        return [name for name, rank in self.ranks.items() if rank >= ODD_RANK]


@dataclass(frozen=True, slots=True)
class QuarterComparison:
    """One measure: the parts of each quarter, the best first, and what still works of it after 90 days.

    `p`: the chance of such a difference between the worst quarter and the others, times the number of measures; None
    where nothing failed.
    """

    measure: str
    parts: tuple[int, ...]
    failures: tuple[int, ...]
    shares: tuple[SurvivalPoint, ...]
    p: float | None

    @property
    def foretells(self) -> bool:
        """Whether the worst quarter fails sooner, beyond doubt."""
        is_sure = self.p is not None and self.p < MOST_P and sum(self.failures) >= LEAST_FAILURES
        others = [share.share for share, parts in zip(self.shares[:-1], self.parts, strict=False) if parts]
        return is_sure and self.shares[-1].share < min(others)

    def as_json(self) -> MeasureAnswer:
        """Return plain JSON data."""
        quarters: list[QuarterAnswer] = [
            {"parts": parts, "failures": failures, "alive": share.share, "band": [share.low, share.high]}
            for parts, failures, share in zip(self.parts, self.failures, self.shares, strict=True)
        ]
        return {"measure": self.measure, "quarters": quarters, "p": self.p, "foretells": self.foretells}


@dataclass(frozen=True, slots=True)
class AcceptanceReport:
    """The comparisons, and the parts to test first: accepted within 90 days, and odd; the oddest first."""

    parts: int
    deliveries: int
    failures: int
    comparisons: tuple[QuarterComparison, ...]
    tested_first: tuple[AcceptedPart, ...]

    @property
    def verdict(self) -> str:
        """What an odd rank means by now, in a sentence."""
        told = [MEASURES[one.measure] for one in self.comparisons if one.foretells]
        if told:
            return f"Parts of the worst quarter fail sooner: {'; '.join(told)}"
        needed = f"(p < {MOST_P:g} and {LEAST_FAILURES} failures are needed)"
        return f'No quarter differs {needed}: an odd rank only means "tested first"'

    def as_json(self) -> TrendsBurnInAnswer:
        """Return plain JSON data."""
        first: list[TestedFirstAnswer] = [
            {"node": one.acceptance.node, "subject": one.acceptance.subject, "serial": one.acceptance.serial,
             "delivery": one.delivery, "ranks": {name: round(rank, 3) for name, rank in one.ranks.items()}}
            for one in self.tested_first
        ]  # fmt: skip
        return {
            "parts": self.parts,
            "deliveries": self.deliveries,
            "failures": self.failures,
            "verdict": self.verdict,
            "measures": [one.as_json() for one in self.comparisons],
            "tested_first": first,
        }


def judge_acceptances(
    acceptances: Iterable[Acceptance], stays: Iterable[PartStay], failures: FailureTimes, today: float
) -> AcceptanceReport:
    """Return the report. A part counts from its first burn-in on, in the delivery that its stay names."""
    first: dict[tuple[str, str, str], Acceptance] = {}
    for one in sorted(acceptances, key=lambda one: one.ended):
        first.setdefault((one.serial, guess_kind(one.subject), "" if one.serial else one.node + one.subject), one)
    wanted = {(one.node, one.subject) for one in first.values()}
    held: dict[tuple[str, str], list[PartStay]] = defaultdict(list)
    for stay in stays:
        if (stay.node, stay.subject) in wanted:
            held[stay.node, stay.subject].append(stay)
    parts = [part for one in first.values() if (part := _follow(one, held, failures, today))]
    ranked = _rank_all(parts)
    compared = [_compare(measure, ranked) for measure in MEASURES]
    odd = [one for one in ranked if one.odd and _is_new(one, today)]
    odd.sort(key=lambda one: (-len(one.odd), -max(one.ranks.values()), one.acceptance.node, one.acceptance.subject))
    failed = sum(one.life.failed for one in ranked)
    deliveries = len({one.delivery for one in ranked})
    return AcceptanceReport(len(ranked), deliveries, failed, tuple(one for one in compared if one), tuple(odd))


def _is_new(part: AcceptedPart, today: float) -> bool:
    """Whether a part was accepted within 90 days, and is there."""
    age = today - part.acceptance.ended
    return age < EARLY_DAYS and part.life.left >= age and not part.life.failed


def _follow(
    one: Acceptance, held: Mapping[tuple[str, str], Sequence[PartStay]], failures: FailureTimes, today: float
) -> AcceptedPart | None:
    """Return the part with its life at this place, None where the ledger does not know it."""
    own = held[one.node, one.subject]
    stay = next((stay for stay in own if stay.since <= one.ended < stay.until), None)
    if stay is None or today <= one.ended:
        return None
    last = max(other.until for other in own if other.serial == stay.serial)
    end = min(today, last, one.ended + EARLY_DAYS)
    there = failures.list_within(stay._replace(until=last))
    failed = next((at for at in there if one.ended < at <= end), None)
    life = Life(0.0, (end if failed is None else failed) - one.ended, failed is not None)
    delivery = " ".join(filter(None, (stay.kind, stay.sku, stay.batch or "delivery not known")))
    return AcceptedPart(one, delivery, life, {})


def _rank_all(parts: Sequence[AcceptedPart]) -> list[AcceptedPart]:
    by_delivery: dict[str, list[AcceptedPart]] = defaultdict(list)
    for part in parts:
        by_delivery[part.delivery].append(part)
    return [one for own in by_delivery.values() if len(own) >= LEAST_DELIVERY for one in _rank(own)]


def _rank(parts: Sequence[AcceptedPart]) -> list[AcceptedPart]:
    """Return the parts of one delivery with their ranks. Equal readings share the middle of their ranks."""
    ranks: list[dict[str, float]] = [{} for _ in parts]
    for measure in MEASURES:
        values = _subtract_places([part.acceptance for part in parts], measure)
        known = sorted(value for value in values if value is not None)
        if len(known) < LEAST_DELIVERY:
            continue
        for own, value in zip(ranks, values, strict=True):
            if value is not None:
                own[measure] = (bisect_left(known, value) + bisect_right(known, value)) / 2 / len(known)
    return [part._replace(ranks=own) for part, own in zip(parts, ranks, strict=True)]


def _subtract_places(some: Sequence[Acceptance], measure: str) -> list[float | None]:
    """Return the readings without what is usual at each place: some places are always warmer. None for no reading."""
    by_place: dict[str, list[float]] = defaultdict(list)
    for one in some:
        if measure in one.readings:
            by_place[one.subject].append(one.readings[measure])
    usual = {place: median(values) for place, values in by_place.items() if len(values) >= LEAST_DELIVERY}
    return [one.readings[measure] - usual.get(one.subject, 0.0) if measure in one.readings else None for one in some]


def _compare(measure: str, parts: Sequence[AcceptedPart]) -> QuarterComparison | None:
    quarters: list[list[Life]] = [[] for _ in range(QUARTERS)]
    for part in parts:
        if measure in part.ranks:
            quarters[min(QUARTERS - 1, int(part.ranks[measure] * QUARTERS))].append(part.life)
    if not quarters[-1] or not any(quarters[:-1]):
        return None
    p = compare_groups({"worst": quarters[-1], "others": [life for own in quarters[:-1] for life in own]})
    curves = [estimate_survival(own) for own in quarters]
    shares = tuple(curve.points[-1] for curve in curves)
    counts = tuple(len(own) for own in quarters), tuple(curve.failures for curve in curves)
    return QuarterComparison(measure, *counts, shares, None if p is None else min(1.0, p * len(MEASURES)))
