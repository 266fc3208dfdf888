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


def score_by_ewma(world: World) -> Scores:
    """Exponentially weighted mean (0.1 a day) against the series' own first 60 days, in its own noise."""
    return _smooth(world.values, 0.1)


def score_by_ewma_apart_from_peers(world: World) -> Scores:
    """The same, of the value less the median of all series with the same firmware on that day."""
    return _smooth(_subtract_peers(world), 0.1)


def score_by_level(world: World) -> Scores:
    """The median of five days as robust z among all series of the measurement on that day."""
    level = _roll_median(world.values, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        middle = np.nanmedian(level, axis=0)
        spread = 1.4826 * np.nanmedian(np.abs(level - middle[None]), axis=0)
    scores: Scores = (level - middle[None]) / spread[None]
    return scores


def find_features(world: World) -> Floats:
    """Return for each series and day: level among peers, change of a week and a month, and noise."""
    apart = _subtract_peers(world)
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


def make_gradient_boosting(worlds: Sequence[World], days: Sequence[int]) -> Scorer:
    """Return a scorer by gradient boosting over the features, which learnt what fails within 30 days."""
    rows, labels = [], []
    for world in worlds:
        fails = np.zeros(world.values.shape, dtype=bool)
        for drift in world.drifts:
            if drift.fails is not None:
                fails[drift.node, drift.measurement, max(drift.onset, drift.fails - 30) : drift.fails] = True
        rows.append(_take(find_features(world), days))
        labels.append(fails[:, :, days].reshape(-1))
    booster = import_module("sklearn.ensemble").HistGradientBoostingClassifier(random_state=0)
    model = booster.fit(np.concatenate(rows), np.concatenate(labels))
    return lambda world: _score_days(world, days, lambda some: model.predict_proba(some)[:, 1])


def name_above(scores: Scores, days: Sequence[int], threshold: float) -> dict[int, list[Series]]:
    """Return what is above the threshold on each day, and on one of the two asked days before it."""
    above = np.nan_to_num(scores[:, :, days], nan=-np.inf) >= threshold
    named: dict[int, list[Series]] = {}
    for place, day in enumerate(days):
        before = above[:, :, max(0, place - 2) : place].any(axis=2)
        nodes, names = np.nonzero(above[:, :, place] & before)
        named[day] = list(zip(nodes.tolist(), names.tolist(), strict=True))
    return named


def set_threshold(scorer: Scorer, worlds: Sequence[World], days: Sequence[int]) -> float:
    """Return the lowest threshold that keeps the budget on these worlds."""
    scored = [(world, scorer(world)) for world in worlds]
    values = np.concatenate([scores[:, :, days].reshape(-1) for _, scores in scored])
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
    """Whether the forest and the boosting can be run here."""
    return find_spec("sklearn") is not None


def _smooth(values: Floats, weight: float) -> Floats:
    """Return the weighted mean of each day, less the mean of the first days, in noises of those."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        own = np.nanmedian(values[:, :, :OWN_DAYS], axis=2)
        noise = 1.4826 * np.nanmedian(np.abs(values[:, :, :OWN_DAYS] - own[:, :, None]), axis=2)
    mean, scores = own.copy(), np.empty_like(values)
    for day in range(values.shape[2]):
        today = values[:, :, day]
        mean = np.where(np.isfinite(today), mean + weight * (today - mean), mean)
        scores[:, :, day] = (mean - own) / noise
    return scores


def _subtract_peers(world: World) -> Floats:
    apart = np.empty_like(world.values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for day in range(world.days):
            today = world.values[:, :, day]
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
    """Score the asked days alone; the forest and the boosting know no gaps, so those count as nothing special."""
    scores = np.full(world.values.shape, np.nan)
    rows = np.nan_to_num(_take(find_features(world), days))
    scores[:, :, list(days)] = score(rows).reshape(*world.values.shape[:2], len(days))
    return scores
