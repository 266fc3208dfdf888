"""How a rule has fared, and how wrong its forecasts were, by its warnings that have ended.

These are the warnings that the ledger keeps, each with what came of it, and what the rule would have said in past
weeks: there, limits that were crossed and parts that failed say what came of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import hypot
from statistics import median, quantiles
from typing import NamedTuple

from assay.decide.trends.days import HORIZON_DAYS
from assay.decide.trends.warning_answers import ActComparison, PastRecord
from assay.model.entries.faults import TrendClosedEntry, TrendDemotedEntry, TrendWarnedEntry, WarningOutcome
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry
from assay.model.peer_statistics import find_share_interval
from assay.model.timestamps import parse_time

LEAST_CLOSED = 30
"""So many warnings with a forecast must have ended before a range of days is told."""


class ClosedWarning(NamedTuple):
    """A warning that has ended. `actual_days`: to the crossing of the limit, or the failure; None where none came."""

    actual_days: float | None
    outcome: WarningOutcome


class FailuresSeen(NamedTuple):
    """Failures and crossings: how many had a sign in what is measured, how many of these were warned of, and of all."""

    with_sign: int = 0
    foreseen_with_sign: int = 0
    every: int = 0
    foreseen: int = 0


class ForecastFactors(NamedTuple):
    """Actual days by forecast days: one in ten is below `low`, one in ten above `high`."""

    low: float
    middle: float
    high: float

    def apply(self, days: float) -> tuple[float, float, float]:
        """Return the range of days that a straight line's days stand for."""
        return days * self.low, days * self.middle, days * self.high


def judge_record(closed: Iterable[ClosedWarning], failures: FailuresSeen | None = None) -> PastRecord:
    """Return how a rule has fared by its closed warnings."""
    some = list(closed)
    outcomes = [ended.outcome for ended in some]
    leads = tuple(ended.actual_days for ended in some if ended.outcome == "right" and ended.actual_days is not None)
    right, wrong = outcomes.count("right"), outcomes.count("wrong")
    seen, interval = failures or FailuresSeen(), find_share_interval(right, right + wrong)
    lead = (median(leads), quantiles(leads, n=10, method="inclusive")[0] if leads[1:] else leads[0]) if leads else None
    return PastRecord(
        right=right,
        wrong=wrong,
        cannot_tell=outcomes.count("cannot tell"),
        precision=_divide(right, right + wrong),
        precision_interval=(round(interval[0], 3), round(interval[1], 3)) if interval else None,
        recall=_divide(seen.foreseen_with_sign, seen.with_sign),
        recall_of_all=_divide(seen.foreseen, seen.every),
        lead_days=(round(lead[0], 3), round(lead[1], 3)) if lead else None,
    )


def _divide(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


TREND_ENTRY_KINDS = (TrendWarnedEntry.kind, TrendClosedEntry.kind, TrendDemotedEntry.kind)


@frozen
class TrendWarning:
    """A warning of a node, when it came, and how it ended; `closed` is None while it is open.

    `tests`: how many idle tests its node had meanwhile.
    """

    node: str
    at: datetime
    content: TrendWarnedEntry
    closed: TrendClosedEntry | None = None
    closed_at: datetime | None = None
    tests: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """What has one open warning at most: a part (by serial number, else by place), and a rule."""
        content = self.content
        return ("" if content.serial else f"{self.node}/{content.place}", content.serial, content.rule)


@frozen
class WarningHistory:
    """All warnings, oldest first, and by rule and revision why a rule lost its stage."""

    warnings: tuple[TrendWarning, ...]
    demotions: dict[tuple[str, str], str]

    @property
    def open(self) -> list[TrendWarning]:
        """Return the warnings of which nobody knows yet what comes of them."""
        return [warning for warning in self.warnings if warning.closed is None]


def compare_acts(warnings: Iterable[TrendWarning]) -> ActComparison:
    """Return what came of warnings that were acted on, beside those that were left alone."""
    known = [each for each in warnings if each.content.stage == "record" or each.content.left_alone]
    arms: dict[bool, list[bool]] = {False: [], True: []}
    for each in known:
        if each.closed and each.closed.outcome != "cannot tell":
            arms[each.content.left_alone].append(each.closed.outcome == "right" and not each.closed.by_check)
    acted, alone = arms[False], arms[True]
    bounds = find_share_interval(sum(acted), len(acted)), find_share_interval(sum(alone), len(alone))
    prevented, interval = None, None
    if bounds[0] and bounds[1]:
        ours, theirs = sum(acted) / len(acted), sum(alone) / len(alone)
        low = theirs - ours - hypot(theirs - bounds[1][0], bounds[0][1] - ours)
        high = theirs - ours + hypot(bounds[1][1] - theirs, ours - bounds[0][0])
        prevented = round((theirs - ours) * len(acted), 2)
        interval = round(low * len(acted), 2), round(high * len(acted), 2)
    tests = sum(each.tests for each in known if not each.content.left_alone)
    return ActComparison(len(acted), sum(acted), len(alone), sum(alone), prevented, interval, tests)


def read_warning_history(entries: Iterable[LedgerEntry]) -> WarningHistory:
    """Return the warnings of the ledger's entries of `TREND_ENTRY_KINDS`; others say nothing."""
    warnings: dict[str, TrendWarning] = {}
    demotions: dict[tuple[str, str], str] = {}
    for entry in entries:
        match entry.kind:
            case TrendWarnedEntry.kind:
                warned = TrendWarnedEntry.read(entry)
                warnings.setdefault(warned.warning, TrendWarning(entry.node, parse_time(entry.at), warned))
            case TrendClosedEntry.kind:
                closed = TrendClosedEntry.read(entry)
                if (known := warnings.get(closed.warning)) and known.closed is None:
                    warnings[closed.warning] = replace(known, closed=closed, closed_at=parse_time(entry.at))
            case TrendDemotedEntry.kind:
                demoted = TrendDemotedEntry.read(entry)
                demotions[demoted.rule, demoted.revision] = demoted.reason
    return WarningHistory(tuple(warnings.values()), demotions)


Part = tuple[str, str]
"""A node and a place in it."""
RULE = "change"
LEAST_READ = 0.8
"""A warning is wrong only if its part was read on so many of the days."""
BEYOND_DAYS, BEYOND_OF = 3, 5
"""A limit is crossed on the third day beyond it within five."""


class PastWarning(NamedTuple):
    """A part that would have been named on a past day. `crossed`: when a limit was crossed later.

    `days_left`: to the limit, in a straight line. `days_later`: with values within the horizon. `ends`: the last day of
    the part there. `is_new`: a warning, and not the same one as some weeks before.
    """

    day: int
    part: Part
    days_left: float | None
    days_later: int
    crossed: int | None
    ends: int | None
    is_new: bool = True


def find_crossing(days: Sequence[int], after: int) -> int | None:
    """Return the first day after another on which a series is beyond its limit for the third time within five days."""
    last = BEYOND_DAYS - 1
    crossings = (days[at + last] for at in range(len(days) - last) if days[at + last] - days[at] < BEYOND_OF)
    return next((day for day in crossings if day > after), None)


def mark_new(named: Iterable[PastWarning], beyond: Mapping[Part, Sequence[Sequence[int]]]) -> list[PastWarning]:
    """Return what was named in past weeks, oldest first, each with whether it is a new warning.

    It is 30 days after the last one of the part, unless a series of the part is beyond its limit already.
    """
    last: dict[Part, int] = {}
    marked = []
    for warning in sorted(named, key=lambda warning: (warning.day, warning.part)):
        is_quiet = warning.day - last.get(warning.part, warning.day - HORIZON_DAYS) >= HORIZON_DAYS
        is_late = any({warning.day, warning.day - 1} & {*days} for days in beyond.get(warning.part, ()))
        if is_quiet:
            last[warning.part] = warning.day
        marked.append(warning._replace(is_new=is_quiet and not is_late))
    return marked


def close_warnings(
    warnings: Iterable[PastWarning], failed: Mapping[Part, Sequence[int]], today: int
) -> Iterator[ClosedWarning]:
    """Yield what came of the warnings whose 30 days are over. The day of the warning itself is too late."""
    for warning in warnings:
        if not warning.is_new or warning.day + HORIZON_DAYS >= today:
            continue
        came = _find_end(warning, failed.get(warning.part, ()))
        came = None if came is None or came > warning.day + HORIZON_DAYS else came
        is_over = warning.ends is not None and warning.ends < warning.day + HORIZON_DAYS
        was_read = warning.days_later >= LEAST_READ * HORIZON_DAYS
        outcome: WarningOutcome = "right" if came else "cannot tell" if is_over or not was_read else "wrong"
        yield ClosedWarning(came and float(came - warning.day), outcome)


def learn_past_factors(past: Sequence[PastWarning], failed: Mapping[Part, Sequence[int]]) -> ForecastFactors | None:
    """Return how wrong straight lines were, of each week on which a part was named; None below 30 warnings.

    A range is shown as long as a warning stands, and not only for the next 30 days: so each of these weeks counts.
    """
    ends = [(warning, _find_end(warning, failed.get(warning.part, ()))) for warning in past]
    came = [(warning, end) for warning, end in ends if warning.days_left and end is not None]
    if sum(warning.is_new for warning, _ in came) < LEAST_CLOSED:
        return None
    tenths = quantiles(((end - warning.day) / (warning.days_left or 1.0) for warning, end in came), n=10)
    low, middle, high = sorted((tenths[0], tenths[4], tenths[8]))  # of equal factors, rounding may change the order
    return ForecastFactors(low, middle, high)


def _find_end(warning: PastWarning, failed: Sequence[int]) -> int | None:
    """Return the day on which the limit was crossed or the part failed."""
    is_within = warning.crossed is not None and (warning.ends is None or warning.crossed <= warning.ends)
    crossed = [warning.crossed] if warning.crossed is not None and is_within else []
    return min((day for day in [*crossed, *failed] if day > warning.day), default=None)


def count_failures(
    warnings: Sequence[PastWarning],
    failed: Mapping[Part, Sequence[int]],
    beyond: Mapping[Part, Sequence[Sequence[int]]],
    since: int,
) -> FailuresSeen:
    """Return how many of the failures and crossings after a day were warned of. Within 30 days of a part, they are one.

    `beyond`: for each series of a part, the days on which it was beyond its limit.
    """
    signs: dict[Part, list[int]] = {}
    for part, each in beyond.items():
        crossings = [find_crossing(days, days[0]) for days in each]
        signs[part] = [day for day in crossings if day and day > since]
    with_sign = foreseen_with_sign = every = foreseen = 0
    for part in signs.keys() | failed.keys():
        events: list[int] = []
        for day in sorted([*signs.get(part, ()), *(day for day in failed.get(part, ()) if day > since)]):
            if not events or day - events[-1] >= HORIZON_DAYS:
                events.append(day)
        for event in events:
            has_sign = any(event <= day < event + HORIZON_DAYS for day in signs.get(part, ()))
            is_foreseen = any(
                warning.is_new and warning.part == part and warning.day < event <= warning.day + HORIZON_DAYS
                for warning in warnings
            )
            every, foreseen = every + 1, foreseen + is_foreseen
            with_sign, foreseen_with_sign = with_sign + has_sign, foreseen_with_sign + (has_sign and is_foreseen)
    return FailuresSeen(with_sign, foreseen_with_sign, every, foreseen)
