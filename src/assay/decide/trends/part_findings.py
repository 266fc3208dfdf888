"""Which parts get worse: the evidence of all measurements of a part, against what healthy parts of past weeks reached.

A part's evidence is its strongest one, what its other measurements have beyond what `ADDS` says, and how rare the sums
of the logarithms of all its counters are: of their growth in two weeks, and of what they count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assay.decide.trends.change_warnings import LOST_READINGS, OF_A_DAY, ChangeScore, SeriesCount, Statistic
from assay.decide.trends.days import (
    HORIZON_DAYS,
    LEAST_OWN,
    LEAST_RECENT,
    LONG_FROM,
    LONG_TO,
    LOOK_BACK_WEEKS,
    MONTHLY_DAYS,
    OWN_FROM,
    OWN_TO,
    RATE_DAYS,
    RECENT_DAYS,
    list_walked_days,
)
from assay.decide.trends.fleet_tables import SHARED_TRAITS
from assay.decide.trends.measured_days import Floats, Grid, Measured, Parts, read_measured
from assay.decide.trends.part_evidence import (
    GAUGES,
    Course,
    Evidence,
    Scores,
    find_evidence,
    find_middle,
    is_counter,
    make_course,
    rank_scores,
)
from assay.decide.trends.warning_record import BEYOND_DAYS, Part, PastWarning, find_crossing
from assay.model.specs.trend_rules import ChangeDetector

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEAST_THRESHOLD = 4.3
"""Eight deviations by the usual tail. It holds while the history is too short to tell."""
LEAST_WEEKS, BLOCK_WEEKS, LEAST_RANK = 3, 4, 4
"""An alarm lasts about four weeks. The fifth alarm of the past, and not the first, tells how often they come."""
ADDS = 2.5, 1.5
"""Beyond 2.5, evidence of a gauge adds to that of another measurement, and beyond 1.5 that of a counter: one healthy
part in 316, and in 32, has as much by chance, but gauges of one part often rise together."""
SUMMED: tuple[Statistic, ...] = ("fortnight", "total")
LEAST_SUMMED = 2
"""A part with so many counters has a sum of them."""
NEVER = 1_000_000
_HELD = """
SELECT p.place, serial, rack, position, pdu, switch, batch, sku, firmware, driver
FROM intervals i JOIN places p ON p.key = i.place
WHERE first_day <= $today + 1 AND last_day >= $today ORDER BY first_day
"""
Traits = tuple[str, ...]


class PartFindings(NamedTuple):
    """What gets worse, the worst first, and what is known of the past.

    `members`: how many judged series of a measurement have each value of a trait, by measurement and trait. `past`:
    what today's threshold names in past weeks. `walked`: what was named on past days, by what was known then. `beyond`:
    the days beyond its limit of each series of a drawn part.
    """

    scores: list[ChangeScore]
    series: SeriesCount
    threshold: float
    is_learned: bool
    members: Mapping[tuple[str, int], Counter[str]]
    past: list[PastWarning]
    walked: list[PastWarning]
    beyond: Mapping[Part, list[list[int]]]
    drawn: frozenset[Part]
    drawn_nodes: int


class _Candidate(NamedTuple):
    """A series with some evidence as of a day."""

    place: int
    day: int
    score: ChangeScore


def add_evidence(sums: Floats, rows: NDArray[np.int32], strength: Floats, adds: float) -> None:
    """Add what a measurement says of parts to `sums`: the strongest, how much of it is within its cut, all beyond."""
    strongest, within, beyond = sums
    within[rows] = np.where(strength > strongest[rows], np.minimum(strength, adds), within[rows])
    strongest[rows] = np.maximum(strongest[rows], strength)
    beyond[rows] += np.maximum(strength - adds, 0)


@dataclass(slots=True)
class DayEvidence:
    """The evidence of parts as of a day, and as of the weeks before, which teach its threshold. `failed`: up to it."""

    parts: Parts
    today: int
    weeks: Sequence[int]
    settings: ChangeDetector
    failed: Mapping[Part, Sequence[int]]
    sums: Floats = field(init=False)
    logs: Floats = field(init=False)
    counters: NDArray[np.int64] = field(init=False)
    failed_on: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without any evidence."""
        size = len(self.parts.names)
        known = {part: [day for day in days if day <= self.today] for part, days in self.failed.items()}
        self.failed = known
        self.failed_on = np.array([min(known.get(part, ()), default=NEVER) for part in self.parts.names], int)
        self.sums = np.zeros((1 + len(self.weeks), 3, size))  # of today, and of each past week
        self.logs, self.counters = np.zeros((len(SUMMED), 1 + len(self.weeks), size)), np.zeros(size, int)

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """Which weeks are so long ago that what was named then has failed, or was wrong."""
        is_over: NDArray[np.bool_] = np.array(self.weeks, int) + HORIZON_DAYS <= self.today
        return is_over

    def add(self, measured: Measured, is_counter: bool, known: Mapping[int, Scores]) -> Evidence:
        """Add what a measurement says, by what is `known` of each day, and return it."""
        scores = [known[day] for day in (self.today, *self.weeks)]
        side = np.isnan(measured.at_least).astype(int) - np.isnan(measured.at_most)
        side = np.ones_like(side) if is_counter else side
        drawn = measured.rows[measured.is_drawn]

        def orient(scores: Floats, is_past: bool) -> Floats:
            towards = side[measured.is_drawn] if is_past else side
            return np.where(towards == 0, np.abs(scores), scores * towards)

        evidence = find_evidence(
            scores[0], scores[1:], orient, self.failed_on[drawn] == NEVER, measured.is_drawn, self.is_over
        )
        self.counters[measured.rows] += is_counter
        for day, strength in enumerate((evidence.today, *evidence.past)):
            rows = drawn if day else measured.rows
            add_evidence(self.sums[day], rows, strength, ADDS[is_counter])
            if is_counter:
                self.logs[:, day, rows] += [np.nan_to_num(scores[day][name]) for name in SUMMED]
        return evidence

    def judge(self, crossed_on: NDArray[np.int64], racks: Sequence[str]) -> tuple[Floats, float, bool]:
        """Return the evidence of each part on each of the days, today's threshold, and whether history told it.

        `crossed_on`: when each part first crossed a limit.
        """
        total, drawn = self.sums[:, 1] + self.sums[:, 2], self.parts.drawn
        if len(self.weeks) >= LEAST_WEEKS:
            summed = np.where(self.counters >= LEAST_SUMMED, self.logs, 0.0)
            total += sum(rank_scores(of_all, drawn & (self.failed_on == NEVER)) for of_all in summed)
        for day, values in zip((self.today, *self.weeks), total, strict=True):  # what has just failed is known
            just = [any(day - RECENT_DAYS < at <= day for at in self.failed.get(part, ())) for part in self.parts.names]
            values[just] = 0.0
        crossed = np.where(crossed_on <= self.today, crossed_on, NEVER)
        is_false = self.find_false(np.minimum(self.failed_on, crossed), total[0] >= LEAST_THRESHOLD)
        return total, *self._learn(total[1:] * is_false * drawn, racks, self.parts.count_drawn_nodes())

    def find_false(self, failed_on: NDArray[np.int64], is_high: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return, week by week, whose evidence was false: nothing followed in time; before its end, it is low again."""
        weeks = np.array(self.weeks, int).reshape(-1, 1)
        is_refuted = self.is_over[:, None] | ((failed_on == NEVER) & ~is_high)
        is_false: NDArray[np.bool_] = (failed_on > weeks + HORIZON_DAYS) & is_refuted
        return is_false

    def _learn(self, past: Floats, racks: Sequence[str], nodes: int) -> tuple[float, bool]:
        """Return the evidence above which false ones of the `past` cost the budget, and whether history told it."""
        if len(self.weeks) < LEAST_WEEKS:
            return LEAST_THRESHOLD, False
        expected = self.settings.alarms_per_1000_node_days * nodes / 1000 * 7 * len(self.weeks)
        alarms: list[float] = []
        for start in range(0, len(self.weeks), BLOCK_WEEKS):
            most = past[start : start + BLOCK_WEEKS].max(axis=0)
            by_rack: dict[str, float] = {}  # a rack that moves as a whole is one alarm
            for place in np.flatnonzero(most > min(ADDS)):
                rack = racks[int(place)] or f"/{place}"
                by_rack[rack] = max(by_rack.get(rack, 0.0), float(most[place]))
            alarms += by_rack.values()
        alarms.sort(reverse=True)
        rank = max(int(expected), LEAST_RANK)
        learned = alarms[rank] + max(0.0, float(np.log10((rank + 1) / expected))) if rank < len(alarms) else 0.0
        return max(learned, LEAST_THRESHOLD), True


@dataclass(slots=True)
class PartSearch:
    """The search as of a day. `weeks`: the past days that are judged too, the newest first.

    The first twelve teach today's threshold. Every second one is also judged by what was known then, as only that tells
    how often such warnings are right: what taught a threshold seldom exceeds it.
    """

    today: int
    weeks: Sequence[int]
    settings: ChangeDetector
    recognise: bool
    failed: Mapping[Part, Sequence[int]]
    candidates: list[_Candidate] = field(default_factory=list)
    beyond: dict[Part, list[list[int]]] = field(default_factory=dict)
    members: dict[tuple[str, int], Counter[str]] = field(default_factory=dict)

    def find(self, database: DuckDBPyConnection) -> PartFindings:
        """Return what gets worse by the tables `measurements`, `intervals` and `failures`."""
        with read_measured(database, self.today) as (parts, every):
            held = {row[0]: (row[1], row[2:]) for row in database.execute(_HELD, {"today": self.today}).fetchall()}
            return self._find(parts, every, held)

    def _find(self, parts: Parts, every: Iterator[Measured], held: Mapping[int, tuple[str, Traits]]) -> PartFindings:
        counts, judged_parts = Counter[str](), np.zeros(len(parts.names), bool)
        drawn, number, least = parts.take_drawn(), np.cumsum(parts.drawn) - 1, self.settings.peers_at_least
        own = self._begin(parts, self.today, self.weeks)
        walks = {
            week: self._begin(drawn, week, self.weeks[1 + at :])
            for at, week in enumerate(self.weeks)
            if week in list_walked_days(self.weeks)
        }
        for measured in every:
            recent, past = self._make_courses(measured)
            scores = {week: past.score(week, least) for week in self.weeks}
            evidence = own.add(measured, past.is_counter, {**scores, self.today: recent.score(self.today, least)})
            for walk in walks.values():
                walk.add(measured.take_drawn(number), past.is_counter, scores)
            self._count(measured, evidence, counts, judged_parts)
            self._keep(measured, (recent, past), evidence, parts, held)
            readings = measured.past  # the last one
        racks = [held[place][1][0] if place in held else "" for place in range(len(parts.names))]
        crossings = ([find_crossing(days, 0) or NEVER for days in self.beyond.get(part, ())] for part in parts.names)
        crossed = np.array([min(some, default=NEVER) for some in crossings], int)
        total, threshold, is_learned = own.judge(crossed, racks)
        named, past_warnings, walked = self._name(total[0], threshold, self.today), [], []
        for evidence, week in zip(total[1:], own.weeks, strict=True):
            strongest = {each.place: each.score for each in reversed(self._name(evidence, threshold, week))}
            for place, score in strongest.items():
                past_warnings.append(self._follow(drawn, readings, int(number[place]), week, score.days_left))
        for week, walk in walks.items():
            then, least_then, _ = walk.judge(
                crossed[parts.drawn], [racks[place] for place in np.flatnonzero(parts.drawn)]
            )
            is_named = (then[0] >= least_then) & (walk.sums[0, 0] >= min(ADDS))
            walked += [self._follow(drawn, readings, int(place), week) for place in np.flatnonzero(is_named)]
        series = SeriesCount(**counts, parts=int(judged_parts.sum()), nodes=parts.nodes)
        return PartFindings(
            [candidate.score for candidate in named],
            series,
            threshold,
            is_learned,
            self.members,
            past_warnings,
            walked,
            self.beyond,
            frozenset(drawn.names),
            drawn.count_drawn_nodes(),
        )

    def _begin(self, parts: Parts, day: int, weeks: Sequence[int]) -> DayEvidence:
        return DayEvidence(parts, day, weeks[:LOOK_BACK_WEEKS], self.settings, self.failed)

    def _make_courses(self, measured: Measured) -> tuple[Course, Course]:
        is_limited = bool(np.isfinite(measured.at_least).any() or np.isfinite(measured.at_most).any())
        counts = any(fnmatchcase(measured.name, pattern) for pattern in self.settings.counters)
        counts = counts or (self.recognise and measured.name != LOST_READINGS and is_counter(measured.past, is_limited))
        past = make_course(measured.name, measured.past, np.ones(len(measured.past.values), bool), counts)
        if measured.recent is measured.past:
            return past, past
        return make_course(measured.name, measured.recent, measured.is_drawn, counts, past.scale), past

    def _count(self, measured: Measured, evidence: Evidence, counts: Counter[str], judged: NDArray[np.bool_]) -> None:
        """Count the series by whether they could be judged."""
        judged_now = np.isfinite(np.array([*evidence.scores[0].values()])).any(axis=0)
        judged[measured.rows[judged_now]] = True
        if measured.name == LOST_READINGS:
            return
        grid, known = measured.recent, np.isfinite(measured.recent.values)
        is_here = (grid.segment[:, grid.find(self.today)] >= 0) & known.any(axis=1)
        last = known[:, grid.window(self.today, RECENT_DAYS - 1, 0)].sum(axis=1)
        columns = grid.window(self.today, OWN_FROM, OWN_TO)
        own = (known[:, columns] & grid.holds(self.today, columns)).sum(axis=1)
        silent = ~judged_now & is_here & (last < LEAST_RECENT) & (known.sum(axis=1) > last)  # else it has just begun
        lonely = ~judged_now & is_here & ~silent & (own >= LEAST_OWN)
        reasons = {
            "judged": judged_now,
            "silent": silent,
            "few_peers": lonely,
            "new": ~judged_now & is_here & ~silent & ~lonely,
        }
        counts.update({name: int(rows.sum()) for name, rows in reasons.items()})

    def _keep(
        self,
        measured: Measured,
        courses: tuple[Course, Course],
        evidence: Evidence,
        parts: Parts,
        held: Mapping[int, tuple[str, Traits]],
    ) -> None:
        """Keep what has some evidence, today or in a past week."""
        recent, past = courses
        drawn = np.flatnonzero(measured.is_drawn)
        kept = ADDS[recent.is_counter]
        rows = np.flatnonzero(evidence.today >= kept)
        statistics = [evidence.told_by[row] for row in rows]
        for score, place in _describe(
            measured, recent, (self.today, rows, rows), statistics, evidence.today[rows], parts, held
        ):
            z = float(evidence.scores[0][score.statistic][np.searchsorted(measured.rows, place)])
            self.candidates.append(_Candidate(place, self.today, score._replace(z=z)))
        if len(rows):
            judged = measured.rows[np.isfinite(np.array([*evidence.scores[0].values()])).any(axis=0)]
            for at in range(len(SHARED_TRAITS)):
                self.members[measured.name, at] = Counter(
                    held[int(row)][1][at] if int(row) in held else "" for row in judged
                )
        for number, week in enumerate(self.weeks[: len(evidence.past)]):
            high = np.flatnonzero(evidence.past[number] >= kept)
            statistics = [evidence.past_told_by[number][row] for row in high]
            strength = evidence.past[number][high]
            where = week, high, drawn[high]
            for score, place in _describe(measured, past, where, statistics, strength, parts, held):
                self.candidates.append(_Candidate(place, week, score))
        if not past.is_counter:
            self._list_beyond(measured, parts)

    def _list_beyond(self, measured: Measured, parts: Parts) -> None:
        columns = measured.past.window(min(self.weeks, default=self.today), BEYOND_DAYS + 2, -self.today)
        at_least, at_most = measured.at_least[measured.is_drawn][:, None], measured.at_most[measured.is_drawn][:, None]
        is_beyond = (measured.past.values[:, columns] > at_most) | (measured.past.values[:, columns] < at_least)
        for row in np.flatnonzero(is_beyond.sum(axis=1) >= BEYOND_DAYS):
            part = parts.names[int(measured.rows[measured.is_drawn][row])]
            days = measured.past.days[columns][is_beyond[row]]
            self.beyond.setdefault(part, []).append([int(day) for day in days if day < self.today])

    def _name(self, evidence: Floats, threshold: float, day: int) -> list[_Candidate]:
        """Return the series of the parts that are named as of a day: the strongest of each, and others as strong."""
        strongest: dict[int, float] = {}
        own = [
            candidate
            for candidate in self.candidates
            if candidate.day == day and evidence[candidate.place] >= threshold
        ]
        for candidate in own:
            strongest[candidate.place] = max(strongest.get(candidate.place, 0.0), candidate.score.evidence)
        named = [
            candidate._replace(score=candidate.score._replace(part_evidence=float(evidence[candidate.place])))
            for candidate in own
            if candidate.score.evidence >= min(threshold, strongest[candidate.place])
        ]
        return sorted(
            named,
            key=lambda candidate: (-candidate.score.part_evidence, -candidate.score.evidence, *candidate.score[:3]),
        )

    def _follow(
        self, drawn: Parts, readings: Grid, place: int, day: int, days_left: float | None = None
    ) -> PastWarning:
        """Return a drawn part that was named on a past day, with what followed. `readings`: what each part gave."""
        later, days = readings.window(day, -1, -HORIZON_DAYS), readings.days
        stays = readings.segment[place] == readings.segment[place, readings.find(day)]
        left = np.flatnonzero(~stays & (days > day))
        days_later = int(((readings.values[place, later] > 0) & stays[later]).sum())
        crossings = [find_crossing(each, day) for each in self.beyond.get(drawn.names[place], ())]
        crossed = min((at for at in crossings if at is not None), default=None)
        ends = int(days[left[0]]) - 1 if len(left) else None
        return PastWarning(day, drawn.names[place], days_left, days_later, crossed, ends)


def _describe(
    measured: Measured,
    course: Course,
    where: tuple[int, NDArray[Any], NDArray[Any]],
    statistics: Sequence[Statistic],
    evidence: Floats,
    parts: Parts,
    held: Mapping[int, tuple[str, Traits]],
) -> Iterator[tuple[ChangeScore, int]]:
    """Yield what was measured of some rows of a course, and of which part. `where`: the day, and the rows of both."""
    day, rows, of_measured = where
    if not len(rows):
        return
    kinds = course.grid.alike[:, course.grid.find(day)]
    shown = {statistic: _measure(course, day, statistic) for statistic in set(statistics)}
    earlier = find_middle(course.cut(course.grid.values, day, RATE_DAYS + RECENT_DAYS - 1, RATE_DAYS))
    for row, number, statistic, strength in zip(rows, of_measured, statistics, evidence, strict=True):
        own, recent, moved = (values for values in shown[statistic])
        alike = (kinds == kinds[row]) & np.isfinite(recent)
        others = float(np.median((recent - own)[alike & np.isfinite(own)])) if statistic not in GAUGES else 0.0
        usual = float(np.median(recent[alike])) if statistic == "total" else float(own[row])
        if statistic in ("change", "creep"):
            others = float(recent[row] - own[row] - moved[row])
        grows = course.is_counter and statistic != "total"
        both = (float(limits[number]) for limits in (measured.at_least, measured.at_most))
        at_least, at_most = (None if grows or not np.isfinite(limit) else limit for limit in both)
        place = int(measured.rows[number])
        serial, traits = held.get(place, ("", ("",) * len(SHARED_TRAITS)))
        score = ChangeScore(
            *parts.names[place],
            measured.name,
            measured.unit + OF_A_DAY * grows,
            serial,
            tuple(traits),
            usual,
            None if course.is_counter or not np.isfinite(earlier[row]) else float(earlier[row]),
            float(recent[row]),
            others,
            int(alike.sum()),
            at_least,
            at_most,
            float(moved[row]),
            float(strength),
            float(strength),
            statistic,
        )
        yield score, place


def _measure(course: Course, day: int, statistic: Statistic) -> tuple[Floats, Floats, Floats]:
    """Return what was usual, what is now, and how far that is apart from the peers, of all rows."""
    values, apart = course.grid.values, course.apart
    if course.is_counter:
        days = MONTHLY_DAYS if statistic == "fortnight" else RECENT_DAYS
        own, recent = (
            np.nansum(cut, axis=1) / np.maximum(1, np.isfinite(cut).sum(axis=1))
            for cut in (course.cut(apart, day, OWN_FROM, OWN_TO), course.cut(apart, day, days - 1, 0))
        )
        if statistic == "total":
            recent = find_middle(course.cut(values, day, RECENT_DAYS - 1, 0))
            return own, recent, recent
        return own * course.scale, recent * course.scale, recent - own
    own_days = (LONG_FROM, LONG_TO) if statistic == "creep" else (OWN_FROM, OWN_TO)
    last = MONTHLY_DAYS if statistic == "creep" else RECENT_DAYS
    own, own_apart = (find_middle(course.cut(grid, day, *own_days)) for grid in (values, apart))
    recent = find_middle(course.cut(values, day, last - 1, 0), near=own)
    recent_apart = find_middle(course.cut(apart, day, last - 1, 0), near=own_apart)
    if statistic == "level":
        return recent - recent_apart, recent, recent_apart
    return own, recent, recent_apart - own_apart


def list_failure_days(database: DuckDBPyConnection) -> dict[Part, list[int]]:
    """Return the days of the failures of each part."""
    failed: dict[Part, list[int]] = {}
    rows: Iterable[tuple[str, str, int]] = database.execute(
        "SELECT node, subject, floor(time_s / 86400)::INT FROM failures ORDER BY ALL"
    ).fetchall()
    for node, subject, day in rows:
        failed.setdefault((node, subject), []).append(day)
    return failed
