"""How far our curves, log-rank tests and Weibull shapes are from those of lifelines, where it is installed."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator, Sequence
from typing import Any

from assay.trends.parts.log_rank import compare_groups
from assay.trends.parts.survival_curves import Life, estimate_survival
from assay.trends.parts.weibull_shape import estimate_shape
from bench.measurement import Measurement

CLOSE = 1e-5


def measure_survival() -> Iterator[Measurement]:
    """Compare on planted lives, of which some were seen from a later age on; nothing without lifelines.

    Its log-rank test knows no later beginnings, so that it is compared on whole lives.
    """
    if importlib.util.find_spec("lifelines") is None:
        return
    import lifelines
    from lifelines.statistics import multivariate_logrank_test

    groups = {name: _plant(seed, scale) for seed, (name, scale) in enumerate({"a": 500, "b": 600, "c": 550}.items())}
    whole = {name: [life._replace(entered=0.0) for life in lives] for name, lives in groups.items()}
    curves = max(_compare_curve(lifelines.KaplanMeierFitter(), lives) for lives in groups.values())
    shapes = max(_compare_shape(lifelines.WeibullFitter(), lives) for lives in groups.values())
    named = [(name, life) for name, lives in whole.items() for life in lives]
    theirs = multivariate_logrank_test(
        [life.left for _, life in named], [name for name, _ in named], [life.failed for _, life in named]
    ).p_value
    p = abs((compare_groups(whole) or 0) / theirs - 1)
    for what, figure in (("curve and band", curves), ("Weibull shape", shapes), ("log-rank p, relative", p)):
        yield Measurement(f"survival: {what}", float(figure), "away from lifelines", "at most", CLOSE)


def _compare_curve(theirs: Any, lives: Sequence[Life]) -> float:
    theirs.fit(*_split(lives), entry=[life.entered for life in lives])
    ours = estimate_survival(lives).points[1:]
    band = theirs.confidence_interval_
    rows = zip(ours, (band.loc[point.days].tolist() for point in ours), strict=True)
    return max(
        max(abs(theirs.predict(one.days) - one.share), abs(low - one.low), abs(high - one.high))
        for one, (low, high) in rows
    )


def _compare_shape(theirs: Any, lives: Sequence[Life]) -> float:
    theirs.fit(*_split(lives), entry=[life.entered for life in lives])
    ours = estimate_shape(lives)
    return abs(theirs.rho_ / ours.shape - 1) if ours else 1.0


def _split(lives: Sequence[Life]) -> tuple[list[float], list[bool]]:
    return [life.left for life in lives], [life.failed for life in lives]


def _plant(seed: int, scale: float) -> list[Life]:
    chance = random.Random(seed)  # noqa: S311 — a planted world
    found = []
    for _ in range(400):
        entered = chance.choice((0.0, round(chance.uniform(0, 100), 1)))
        fails, ends = round(chance.weibullvariate(scale, 1.5), 1), round(entered + chance.uniform(1, 800), 1)
        if fails > entered:
            found.append(Life(entered, min(fails, ends), fails <= ends))
    return found
