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
    MONTHLY_DAYS,
    OWN_FROM,
    OWN_TO,
    RATE_DAYS,
    RECENT_DAYS,
)
from assay.decide.trends.fleet_tables import SHARED_TRAITS
from assay.decide.trends.measured_days import Floats, Measured, Parts, read_measured
from assay.decide.trends.part_evidence import (
    GAUGES,
    Course,
    Evidence,
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
    what would have been named in past weeks. `beyond`: the days beyond its limit of each series of a drawn part.
    """

    scores: list[ChangeScore]
    series: SeriesCount
    threshold: float
    is_learned: bool
    members: Mapping[tuple[str, int], Counter[str]]
    past: list[PastWarning]
    beyond: Mapping[Part, list[list[int]]]
    drawn: frozenset[Part]
    drawn_nodes: int


class _Candidate(NamedTuple):
    """A series with some evidence as of a day. `days_later`: with values within the horizon."""

    place: int
    day: int
    score: ChangeScore
    days_later: int = 0
    ends: int | None = None


def add_evidence(sums: Floats, rows: NDArray[np.int32], strength: Floats, adds: float) -> None:
    """Add what a measurement says of parts to `sums`: the strongest, how much of it is within its cut, all beyond."""
    strongest, within, beyond = sums
    within[rows] = np.where(strength > strongest[rows], np.minimum(strength, adds), within[rows])
    strongest[rows] = np.maximum(strongest[rows], strength)
    beyond[rows] += np.maximum(strength - adds, 0)


@dataclass(slots=True)
class PartSearch:
    """The search as of a day; `weeks` are the past days that are judged too, the newest first."""

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
        size = len(parts.names)
        failed_on = np.array([min(self.failed.get(part, [NEVER])) for part in parts.names])
        failed = failed_on < NEVER
        sums = np.zeros((1 + len(self.weeks), 3, size))  # of today, and of each past week
        logs, counters = np.zeros((len(SUMMED), *sums[:, 0].shape)), np.zeros(size, int)
        counts, judged_parts = Counter[str](), np.zeros(size, bool)
        for measured in every:
            course, evidence = self._judge(measured, failed)
            self._count(measured, evidence, counts, judged_parts)
            counters[measured.rows] += course[0].is_counter
            for day, strength in enumerate((evidence.today, *evidence.past)):
                rows = measured.rows[measured.is_drawn] if day else measured.rows
                add_evidence(sums[day], rows, strength, ADDS[course[0].is_counter])
                if course[0].is_counter:
                    logs[:, day, rows] += [np.nan_to_num(evidence.scores[day][name]) for name in SUMMED]
            self._keep(measured, course, evidence, parts, held)
        total = sums[:, 1] + sums[:, 2]
        if len(self.weeks) >= LEAST_WEEKS:
            summed = np.where(counters >= LEAST_SUMMED, logs, 0.0)
            total += sum(rank_scores(of_all, parts.drawn & ~failed) for of_all in summed)
        for day, values in zip((self.today, *self.weeks), total, strict=True):  # what has just failed is known
            just = [any(day - RECENT_DAYS < at <= day for at in self.failed.get(part, ())) for part in parts.names]
            values[just] = 0.0
        today, past = total[0], total[1:]
        racks = [held[place][1][0] if place in held else "" for place in range(size)]
        drawn_nodes = len({int(node) for node in parts.node_of[parts.drawn]})
        crossings = ([find_crossing(days, 0) or NEVER for days in self.beyond.get(part, ())] for part in parts.names)
        crossed = np.array([min(some, default=NEVER) for some in crossings])
        is_false = self.find_false(np.minimum(failed_on, crossed), today >= LEAST_THRESHOLD)
        threshold, is_learned = self._learn(past * is_false * parts.drawn, racks, drawn_nodes)
        series = SeriesCount(**counts, parts=int(judged_parts.sum()), nodes=parts.nodes)
        named = self._name(today, threshold, self.today)
        drawn = frozenset(part for part, is_drawn in zip(parts.names, parts.drawn, strict=True) if is_drawn)
        past_warnings = [
            warning for row, week in enumerate(self.weeks) for warning in self._look_back(past[row], threshold, week)
        ]
        return PartFindings(
            [candidate.score for candidate in named],
            series,
            threshold,
            is_learned,
            self.members,
            past_warnings,
            self.beyond,
            drawn,
            drawn_nodes,
        )

    def _judge(self, measured: Measured, failed: NDArray[np.bool_]) -> tuple[tuple[Course, Course], Evidence]:
        is_limited = bool(np.isfinite(measured.at_least).any() or np.isfinite(measured.at_most).any())
        counts = any(fnmatchcase(measured.name, pattern) for pattern in self.settings.counters)
        counts = counts or (self.recognise and measured.name != LOST_READINGS and is_counter(measured.past, is_limited))
        recent = make_course(measured.name, measured.recent, measured.is_drawn, counts)
        past = (
            recent
            if measured.recent is measured.past
            else make_course(measured.name, measured.past, np.ones(len(measured.past.values), bool), counts)
        )
        least = self.settings.peers_at_least
        side = np.isnan(measured.at_least).astype(int) - np.isnan(measured.at_most)
        side = np.ones_like(side) if counts else side

        def orient(scores: Floats, is_past: bool) -> Floats:
            towards = side[measured.is_drawn] if is_past else side
            return np.where(towards == 0, np.abs(scores), scores * towards)

        today, before = recent.score(self.today, least), [past.score(week, least) for week in self.weeks]
        return (recent, past), find_evidence(
            today, before, orient, ~failed[measured.rows[measured.is_drawn]], measured.is_drawn, self.is_over
        )

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
        for number, week in enumerate(self.weeks):
            high = np.flatnonzero(evidence.past[number] >= kept)
            statistics = [evidence.past_told_by[number][row] for row in high]
            strength = evidence.past[number][high]
            for row, (score, place) in zip(
                high,
                _describe(measured, past, (week, high, drawn[high]), statistics, strength, parts, held),
                strict=True,
            ):
                later = past.grid.window(week, -1, -HORIZON_DAYS)
                stays = past.grid.segment[row] == past.grid.segment[row, past.grid.find(week)]
                left = np.flatnonzero(~stays & (past.grid.days > week))
                ends = int(past.grid.days[left[0]]) - 1 if len(left) else None
                days_later = int((np.isfinite(past.grid.values[row, later]) & stays[later]).sum())
                self.candidates.append(_Candidate(place, week, score, days_later, ends))
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

    @property
    def is_over(self) -> NDArray[np.bool_]:
        """Which weeks are so long ago that what was named then has failed, or was wrong."""
        is_over: NDArray[np.bool_] = np.array(self.weeks, int) + HORIZON_DAYS <= self.today
        return is_over

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

    def _look_back(self, evidence: Floats, threshold: float, week: int) -> Iterator[PastWarning]:
        """Yield what would have been named in a past week, a warning for each part."""
        seen: set[int] = set()
        for candidate in self._name(evidence, threshold, week):
            if candidate.place in seen:
                continue
            seen.add(candidate.place)
            part = candidate.score.node, candidate.score.subject
            crossings = [find_crossing(days, week) for days in self.beyond.get(part, ())]
            crossed = min((day for day in crossings if day is not None), default=None)
            yield PastWarning(week, part, candidate.score.days_left, candidate.days_later, crossed, candidate.ends)


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
        limits = (
            (None, None) if grows else (_find_limit(measured.at_least[number]), _find_limit(measured.at_most[number]))
        )
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
            *limits,
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


def _find_limit(limit: float) -> float | None:
    return float(limit) if np.isfinite(limit) else None


def list_failure_days(database: DuckDBPyConnection) -> dict[Part, list[int]]:
    """Return the days of the failures of each part."""
    failed: dict[Part, list[int]] = {}
    rows: Iterable[tuple[str, str, int]] = database.execute(
        "SELECT node, subject, floor(time_s / 86400)::INT FROM failures ORDER BY ALL"
    ).fetchall()
    for node, subject, day in rows:
        failed.setdefault((node, subject), []).append(day)
    return failed
