"""Other methods to find what gets worse, as the literature has them: a score for each series and day.

Each is given the values as a node × measurement × day array, worse is positive, and the days of new firmware. None
reads a later day. A threshold is set on other fleets, so that it costs the same budget of false warnings as ours.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from bench.trend_judge import Series, add_judgements, judge_warnings
from bench.trend_worlds import Floats, World

BUDGET = 0.1
"""False warnings per 1,000 nodes and day."""
OWN_DAYS = 60
Scores = Floats
Scorer = Callable[[World], Scores]


def find_gauges(world: World) -> Floats:
    """Return the values of each day apart from those with the same firmware; of counters their growth in a day."""
    values = world.values.copy()
    for counter in world.counters:
        grown = np.diff(fill_days(values[:, counter]), axis=1, prepend=np.nan)
        values[:, counter] = np.where(np.isfinite(values[:, counter]) & (grown >= 0), grown, np.nan)
    for node, day in world.repairs:
        values[node, list(world.counters), day] = np.nan
    return _subtract_peers(world, values)


def score_by_level(world: World) -> Scores:
    """The median of seven days as robust z among all series of the measurement on that day."""
    return _scale(_roll_median(find_gauges(world), 7))


def score_by_ewma(world: World) -> Scores:
    """A fast weighted mean (0.2 a day) less a slow one (0.02), as robust z."""
    apart = find_gauges(world)
    return _scale(_smooth(apart, 0.2) - _smooth(apart, 0.02))


def score_by_slope(world: World) -> Scores:
    """Theil and Sen: the median of the changes in 15 days of the last 30, as robust z."""
    apart = find_gauges(world)
    change = np.full(apart.shape, np.nan)
    change[:, :, 15:] = apart[:, :, 15:] - apart[:, :, :-15]
    return _scale(_roll_median(change, 15))


def score_by_growth(world: World) -> Scores:
    """One line: how much it is more than 14 days ago."""
    level = _roll_median(find_gauges(world), 7)
    grown = np.full(level.shape, np.nan)
    grown[:, :, 14:] = level[:, :, 14:] - level[:, :, :-14]
    return grown


def score_by_cusum(world: World) -> Scores:
    """The sum of what is half a deviation above the part's own first days, never below nothing."""
    apart, sums = find_gauges(world), np.zeros(world.values.shape[:2])
    own, noise = _find_own(apart)
    scores = np.empty_like(apart)
    for day in range(apart.shape[2]):
        far = np.clip((apart[:, :, day] - own) / np.maximum(noise, 1e-6), -4, 4)
        sums = np.maximum(0.0, sums + np.nan_to_num(far) - 0.5 * np.isfinite(far))
        scores[:, :, day] = sums
    return scores


def find_features(world: World) -> Floats:
    """Return for each series and day: level among peers, change of a week and a month, and noise."""
    apart = find_gauges(world)
    level, month = _roll_median(apart, 5), _roll_median(apart, 28)
    week = np.concatenate([np.full((*level.shape[:2], 7), np.nan), level[:, :, :-7]], axis=2)
    noise = _roll_median(np.abs(apart - level), 14)
    return np.stack([level, level - week, level - month, noise], axis=-1)


def make_isolation_forest(worlds: Sequence[World], days: Sequence[int]) -> Scorer:
    """Return a scorer by an isolation forest over the features, of scikit-learn."""
    rows = np.concatenate([_take(find_features(world), days) for world in worlds])
    forest = (
        import_module("sklearn.ensemble").IsolationForest(n_estimators=100, random_state=0).fit(np.nan_to_num(rows))
    )
    return lambda world: _score_days(world, days, lambda some: -forest.score_samples(some))


def name_above(scores: Scores, days: Sequence[int], threshold: float) -> dict[int, list[Series]]:
    """Return what is above the threshold on each day."""
    above = np.nan_to_num(scores[:, :, list(days)], nan=-np.inf) >= threshold
    named: dict[int, list[Series]] = {}
    for place, day in enumerate(days):
        nodes, names = np.nonzero(above[:, :, place])
        named[day] = list(zip(nodes.tolist(), names.tolist(), strict=True))
    return named


def rank_scores(scorer: Scorer, worlds: Sequence[World], days: Sequence[int]) -> Scorer:
    """Return a scorer by how rare a score is for its measurement in these worlds: a threshold for each measurement."""
    known = []
    for measurement in range(len(worlds[0].names)):
        values = []
        for world in worlds:
            sick = {drift.node for drift in world.drifts} | {node for node, _ in world.abrupt}
            healthy = [node for node in range(world.nodes) if node not in sick]
            values.append(scorer(world)[np.ix_(healthy, [measurement], days)].reshape(-1))
        joined = np.concatenate(values)
        known.append(np.sort(joined[np.isfinite(joined)]))

    def rank(world: World) -> Scores:
        scores = scorer(world)
        ranks = np.full(scores.shape, np.nan)
        for measurement, healthy in enumerate(known):
            own = scores[:, measurement]
            top = healthy[-max(2, len(healthy) // 1000) :]
            beyond = np.maximum(np.nan_to_num(own) - top[-1], 0) / max(float(top[-1] - top[0]), 1e-9)
            rare = 1 - np.searchsorted(healthy, own) / (len(healthy) + 1)
            ranks[:, measurement] = np.where(np.isfinite(own), beyond - np.log10(np.maximum(rare, 1e-9)), np.nan)
        return ranks

    return rank


def set_threshold(scorer: Scorer, worlds: Sequence[World], days: Sequence[int]) -> float:
    """Return the lowest threshold that keeps the budget on these worlds."""
    scored = [(world, scorer(world)) for world in worlds]
    values = np.concatenate([scores[:, :, list(days)].reshape(-1) for _, scores in scored])
    ladder = np.unique(np.quantile(values[np.isfinite(values)], 1 - np.geomspace(1e-6, 0.1, 60)))
    low, high = 0, len(ladder) - 1
    while low < high:
        middle = (low + high) // 2
        judged = [judge_warnings(world, days, name_above(scores, days, ladder[middle])) for world, scores in scored]
        if add_judgements(judged).false_rate <= BUDGET:
            high = middle
        else:
            low = middle + 1
    return float(ladder[low])


def has_scikit_learn() -> bool:
    """Whether the forest can be run here."""
    return find_spec("sklearn") is not None


def fill_days(values: Floats) -> Floats:
    """Return each value, or where there is none the last one before."""
    column = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(values.shape[1])[None, :], 0), axis=1)
    return np.asarray(np.take_along_axis(values, column, axis=1))


def _find_own(values: Floats) -> tuple[Floats, Floats]:
    """Return the median of each series' first days, and its noise in these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        own = np.nanmedian(values[:, :, :OWN_DAYS], axis=2)
        return own, 1.4826 * np.nanmedian(np.abs(values[:, :, :OWN_DAYS] - own[:, :, None]), axis=2)


def _scale(values: Floats) -> Scores:
    """Return the robust z of each series among all of its measurement on that day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        far = values - np.nanmedian(values, axis=0)[None]
        spread = 1.4826 * np.nanmedian(np.abs(far), axis=0)
        spread = np.where(spread > 0, spread, 1.2533 * np.nanmean(np.abs(far), axis=0))
        return np.asarray(far / np.where(spread > 0, spread, 1.0)[None])


def _smooth(values: Floats, weight: float) -> Floats:
    """Return the weighted mean of each day."""
    mean, scores = np.nan_to_num(_find_own(values)[0]), np.empty_like(values)
    for day in range(values.shape[2]):
        today = values[:, :, day]
        mean = np.where(np.isfinite(today), mean + weight * (today - mean), mean)
        scores[:, :, day] = mean
    return scores


def _subtract_peers(world: World, values: Floats) -> Floats:
    apart = np.empty_like(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for day in range(world.days):
            today = values[:, :, day]
            is_new = world.updated <= day
            for group in (is_new, ~is_new):
                apart[group, :, day] = today[group] - np.nanmedian(today[group], axis=0)
    return apart


def _roll_median(values: Floats, days: int) -> Floats:
    rolled = np.full(values.shape, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for day in range(days - 1, values.shape[2]):
            rolled[:, :, day] = np.nanmedian(values[:, :, day - days + 1 : day + 1], axis=2)
    return rolled


def _take(features: Floats, days: Sequence[int]) -> Floats:
    return features[:, :, list(days)].reshape(-1, features.shape[-1])


def _score_days(world: World, days: Sequence[int], score: Callable[[Floats], Floats]) -> Scores:
    """Score the asked days alone; the forest knows no gaps, so those count as nothing special."""
    scores = np.full(world.values.shape, np.nan)
    rows = np.nan_to_num(_take(find_features(world), days))
    scores[:, :, list(days)] = score(rows).reshape(*world.values.shape[:2], len(days))
    return scores
