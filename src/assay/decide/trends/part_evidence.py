"""How unlikely a part looks among its peers: plain statistics of one measurement, each against its own past tail.

Gauges: a change in two months, a creep in most of a year, the level among peers. The median of peers is taken off each
day, so seasons and steps by new firmware go. Counters, which only grow between resets: their usual growth in a day of
the last week, their growth in two weeks, and the count itself. A statistic counts as evidence by what healthy parts of
past weeks reached, so a measurement with a heavy tail takes nothing from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from assay.decide.trends.change_warnings import LOST_READINGS, Statistic
from assay.decide.trends.days import (
    LEAST_OWN,
    LEAST_RECENT,
    LONG_FROM,
    LONG_TO,
    MONTHLY_DAYS,
    OWN_FROM,
    OWN_TO,
    RECENT_DAYS,
)
from assay.decide.trends.measured_days import Floats, Grid
from assay.model.facts import frozen
from assay.model.peer_statistics import find_spread

Scores = dict[Statistic, Floats]
GAUGES: tuple[Statistic, ...] = ("change", "creep", "level")
PEERS_FOR_MIDDLE = 512
"""The median of a day is that of about so many parts of each kind and firmware."""
LEAST_RISES, RISES_PER_FALL = 10, 5
"""What a measurement shows that is taken for a counter; a gauge falls about as often as it rises."""
BIT_ENDS = tuple(float(2**bits - 1) for bits in (4, 8, 16, 32, 64))
"""Where counters stop, and then say nothing: those of InfiniBand ports have 4, 8, 16, 32 or 64 bits."""
TAIL_SHARE, LEAST_TAIL = 0.004, 20
"""The tail of a statistic: its share of the past, and the fewest values."""
LEAST_RANKED = 5
"""So many of the past as high as a score tell by their number how rare it is."""
LEAST_PAST = 60
"""With fewer values of the past, the usual tail holds: one part in 300 is above 3 deviations, and then e times fewer
with each 1.2 more."""
USUAL_EDGE, USUAL_RATE, USUAL_SCALE = 3.0, 1 / 300, 1.2
USUAL_WEIGHT, USUAL_TAIL_SCALE = 10, 0.6
"""A learnt tail counts its values, and ten of a usual one."""
LEAST_LOSS = 0.1
LEAST_SPAN = 60
"""Days that the long past must span: less of it may be one season."""
FAR = 8.0
FIRST_SHARE = 0.001
"""Parts whose gauges moved this far teach no tail what is healthy. Of counters, the first of today do not for a month:
what still stands then, and has not failed, is healthy."""


def find_middle(values: Floats, least: int = 1, near: Floats | None = None) -> Floats:
    """Return the median of each row, NaN with fewer values.

    Of two middle ones, it is the one nearer to `near`: half of the days, which may be wild, do not move it.
    """
    if not values.shape[1]:
        return np.full(len(values), np.nan)
    ordered, count, row = np.sort(values, axis=1), np.isfinite(values).sum(axis=1), np.arange(len(values))
    low, high = ordered[row, np.maximum(count - 1, 0) // 2], ordered[row, np.minimum(count // 2, values.shape[1] - 1)]
    middle = (low + high) / 2 if near is None else np.where(np.abs(high - near) < np.abs(low - near), high, low)
    return np.where(count >= least, middle, np.nan)


def subtract_peers(grid: Grid, is_first: NDArray[np.bool_]) -> Floats:
    """Return the values less the median of like parts on that day, of those that are `is_first` if they suffice."""
    apart = np.full_like(grid.values, np.nan)
    for kind in np.unique(grid.alike[grid.alike >= 0]):
        rows = np.flatnonzero((grid.alike == kind).any(axis=1))
        drawn = rows[np.argsort(~is_first[rows], kind="stable")[:PEERS_FOR_MIDDLE]]
        peers = np.where(grid.alike[drawn] == kind, grid.values[drawn], np.nan)
        others = grid.values[rows] - find_middle(np.ascontiguousarray(peers.T))[None, :]
        apart[rows] = np.where(grid.alike[rows] == kind, others, apart[rows])
    return apart


def is_counter(grid: Grid, is_limited: bool) -> bool:
    """Whether a measurement only grows between resets, or counts what most parts have none of, as bad sectors.

    What has a limit and never falls is wear: its level counts.
    """
    before, _ = _look_around(grid.values)
    rises, falls = int((grid.values > before).sum()), int((grid.values < before).sum())
    known = grid.values[np.isfinite(grid.values)]
    is_rare = len(known) > 0 and np.median(known) == 0 and known.min() == 0 and bool((known % 1 == 0).all())
    is_growing = (rises >= LEAST_RISES and rises >= RISES_PER_FALL * falls) or (is_rare and rises > 0)
    return is_growing and (falls > 0 or not is_limited)


def _look_around(values: Floats) -> tuple[Floats, Floats]:
    """Return the value before each, and the one after it, NaN where there is none."""
    before, after = np.full_like(values, np.nan), np.full_like(values, np.nan)
    before[:, 1:] = fill_forward(values)[:, :-1]
    after[:, :-1] = fill_forward(values[:, ::-1])[:, ::-1][:, 1:]
    return before, after


def fill_forward(values: Floats) -> Floats:
    """Return each value, or where there is none the last one before."""
    column = np.where(np.isfinite(values), np.arange(values.shape[1])[None, :], 0)
    return np.asarray(np.take_along_axis(values, np.maximum.accumulate(column, axis=1), axis=1))


def measure_growth(grid: Grid) -> Floats:
    """Return the growth in a day since the last value, NaN after a fall, another part, or at the end of the bits."""
    before, after = _look_around(grid.values)
    is_wild = (before <= after) & ((grid.values < before) | (grid.values > after))
    values = np.where(is_wild, np.nan, grid.values)
    before, _ = _look_around(values)
    day = np.where(np.isfinite(values), grid.days[None, :].astype(float), np.nan)
    which = np.where(np.isfinite(values), grid.segment, np.nan)
    grown = values - before
    ends = (grown == 0) & np.isin(values, BIT_ENDS)
    stays = (grown >= 0) & ~ends & (which == _look_around(which)[0])
    return np.where(stays, grown / np.maximum(1, day - _look_around(day)[0]), np.nan)


@frozen
class Course:
    """A measurement of the parts of a grid, apart from their peers; of a counter its growth, in usual growths of a day.

    `least_spread`: of lost readings, whose changes alone tell: less is no loss.
    """

    grid: Grid
    apart: Floats
    is_counter: bool
    scale: float = 1.0
    least_spread: float = 0.0

    def cut(self, values: Floats, day: int, first: int, last: int) -> Floats:
        """Return the values of these days before a day, of the part of that day."""
        columns = self.grid.window(day, first, last)
        return np.where(self.grid.holds(day, columns), values[:, columns], np.nan)

    def score(self, day: int, least: int) -> Scores:
        """Return each statistic as of a day, up is more; NaN where the part, or its peers, give too little."""
        raw = self._count(day) if self.is_counter else self._compare(day)
        kinds = self.grid.alike[:, self.grid.find(day)]
        is_read = np.isfinite(self.cut(self.grid.values, day, RECENT_DAYS - 1, 0)).sum(axis=1) >= LEAST_RECENT
        return {
            name: scale_by_peers(
                np.where(is_read, values, np.nan), kinds, least, None if self.is_counter else self.least_spread
            )
            for name, values in raw.items()
        }

    def _compare(self, day: int) -> Scores:
        own = find_middle(self.cut(self.apart, day, OWN_FROM, OWN_TO), LEAST_OWN)
        last = self.cut(self.apart, day, RECENT_DAYS - 1, 0)
        month = find_middle(self.cut(self.apart, day, MONTHLY_DAYS - 1, 0), LEAST_OWN)
        days = self.grid.days[self.grid.window(day, LONG_FROM, LONG_TO)]
        before = self.cut(self.apart, day, LONG_FROM, LONG_TO)
        is_long = len(days) > 0 and days[-1] - days[0] >= LEAST_SPAN
        long = find_middle(before, LEAST_OWN) if is_long else np.full_like(own, np.nan)
        is_old = np.isfinite(before).any(axis=1)  # a new part's level may be its own, as after a repair
        level = find_middle(last, LEAST_RECENT, np.zeros(len(last)))
        change = find_middle(last, LEAST_RECENT, own) - own
        if self.least_spread:
            return {"change": change}
        return {"change": change, "creep": month - long, "level": np.where(np.isfinite(own) & is_old, level, np.nan)}

    def _count(self, day: int) -> Scores:
        growth, total = self.apart, fill_forward(self.grid.values)[:, self.grid.find(day)]
        is_known = np.isfinite(self.cut(growth, day, 90, 15)).sum(axis=1) >= LEAST_OWN
        scores: Scores = {
            "rate": find_middle(self.cut(growth, day, RECENT_DAYS - 1, 0), LEAST_RECENT),
            "fortnight": np.log1p(np.nansum(self.cut(growth, day, MONTHLY_DAYS - 1, 0), axis=1)),
            "total": np.log1p(np.maximum(total, 0) / self.scale),
        }
        return {name: np.where(is_known, values, np.nan) for name, values in scores.items()}


def make_course(name: str, grid: Grid, is_first: NDArray[np.bool_], counts: bool, scale: float = 0.0) -> Course:
    """Return the course of a measurement, which may be a counter. `scale`: its usual growth in a day, if known."""
    if not counts:
        least_spread = LEAST_LOSS if name == LOST_READINGS else 0.0
        return Course(grid, subtract_peers(grid, is_first), is_counter=False, least_spread=least_spread)
    growth = measure_growth(grid)
    rises = growth[growth > 0]
    scale = scale or (float(np.median(rises)) if len(rises) else 1.0)
    return Course(grid, growth / scale, is_counter=True, scale=scale)


def scale_by_peers(values: Floats, kinds: NDArray[np.int16], least: int, least_spread: float | None) -> Floats:
    """Return how far each value is from the median of its kind, in robust deviations; None: as it is."""
    scaled = np.full(len(values), np.nan)
    for kind in np.unique(kinds[kinds >= 0]):
        rows = np.flatnonzero((kinds == kind) & np.isfinite(values))
        if len(rows) < least:
            continue
        far = values[rows] - np.median(values[rows])
        if least_spread is not None:
            spread = find_spread(float(np.median(np.abs(far))), float(np.abs(far).mean())) or 1.0
            far = far / max(spread, least_spread)
        scaled[rows] = far
    return scaled


@frozen
class Tail:
    """How many healthy parts reach a score: by rank where some did, beyond by a generalised Pareto distribution."""

    known: Floats
    edge: float = USUAL_EDGE
    rate: float = USUAL_RATE
    scale: float = USUAL_SCALE
    shape: float = 0.0

    def weigh(self, scores: Floats) -> Floats:
        """Return the evidence of scores: the decimal logarithm of how many healthy parts there are to one like it."""
        reached = np.nan_to_num(scores, nan=-np.inf)
        beyond = np.maximum(reached - self.edge, 0.0)
        steps = np.log1p(self.shape * beyond / self.scale) / self.shape if self.shape else beyond / self.scale
        far = np.where(beyond > 0, (steps - np.log(self.rate)) / np.log(10), 0.0)
        if not len(self.known):
            return far
        as_high = len(self.known) - np.searchsorted(self.known, reached)
        by_rank = np.log10(len(self.known) / np.maximum(as_high, LEAST_RANKED))
        return np.where(as_high >= LEAST_RANKED, by_rank, np.maximum(far, by_rank))


def learn_tail(past: Floats) -> Tail:
    """Return the tail of scores of the past, by probability-weighted moments of those above its edge."""
    known = np.sort(past[np.isfinite(past)])
    if len(known) < LEAST_PAST:
        return Tail(known[:0])
    size = min(max(LEAST_TAIL, int(TAIL_SHARE * len(known))), len(known) // 5)
    edge, beyond = max(float(known[-size - 1]), 0.0), np.maximum(known[-size:] - max(known[-size - 1], 0.0), 0.0)
    mean = beyond.mean()
    weighted = (beyond * (1 - (np.arange(1, size + 1) - 0.35) / size)).mean()
    shape = 2 - mean / (mean - 2 * weighted) if mean > 2 * weighted else 1.0
    shape = float(np.clip(shape, 0.0, 1.0))
    scale = mean * (1 - shape) if shape < 1 else mean / 5
    weight = size / (size + USUAL_WEIGHT)
    rate = max(1, int((beyond > 0).sum())) / len(known)
    return Tail(known, edge, rate, float(scale * weight + USUAL_TAIL_SCALE * (1 - weight)), shape * weight)


@frozen
class Evidence:
    """The evidence of each part, and the statistic that gave most. `today`: of all; `past`: by day.

    `scores`: of today, then of each past day.
    """

    today: Floats
    told_by: list[Statistic]
    scores: Sequence[Scores]
    past: Floats
    past_told_by: list[list[Statistic]]


def find_evidence(
    today: Scores,
    past: Sequence[Scores],
    orient: Callable[[Floats, bool], Floats],
    healthy: NDArray[np.bool_],
    is_drawn: NDArray[np.bool_],
    is_over: NDArray[np.bool_],
) -> Evidence:
    """Return the evidence of today's scores, and of those of past days, which are of the drawn rows.

    `orient` makes scores positive where they are worse, of all rows or of the past. `healthy`: which of the drawn rows
    have not failed. `is_over`: of which past days nobody waits any more what follows.
    """
    names = list(today)
    of_today, of_past = [], []
    for name in names:
        now = orient(today[name], False)
        before = np.array([orient(scores[name], True) for scores in past]).reshape(len(past), int(is_drawn.sum()))
        if name == "creep" and not np.isfinite(before).any(axis=1).all():
            now, before = np.full_like(now, np.nan), np.full_like(before, np.nan)  # it may be the season of the year
        suspects = _find_suspects(name, now[is_drawn])
        teaches = healthy & (~suspects if name in GAUGES else ~suspects | is_over[:, None])
        tail = learn_tail(before[np.broadcast_to(teaches, before.shape)])
        of_today.append(tail.weigh(now))
        of_past.append(tail.weigh(before))
    strongest, past_strongest = np.argmax(of_today, axis=0), np.argmax(of_past, axis=0)
    return Evidence(
        np.max(of_today, axis=0),
        [names[at] for at in strongest],
        [today, *past],
        np.max(of_past, axis=0),
        [[names[at] for at in row] for row in past_strongest],
    )


def rank_scores(scores: Floats, healthy: NDArray[np.bool_]) -> Floats:
    """Return the evidence of scores above 0 by their rank among those of healthy parts on past days. Day 0 is today."""
    known = np.sort(scores[1:, healthy], axis=None)
    as_high = len(known) - np.searchsorted(known, scores)
    return np.where(scores > 0, np.log10(max(len(known), 1) / np.maximum(as_high, 1)), 0.0)


def _find_suspects(name: Statistic, scores: Floats) -> NDArray[np.bool_]:
    """Return which rows are high today. A level that was always high is no suspect."""
    known = scores[np.isfinite(scores)]
    if not len(known) or name == "level":
        return np.zeros(len(scores), bool)
    first = np.sort(known)[-min(len(known), max(1, int(FIRST_SHARE * len(known))))]
    suspects: NDArray[np.bool_] = scores >= (FAR if name in GAUGES else first)
    return suspects & (scores > 0)
