"""The rules for flaky checks and for the noise of measurements, wherever the values come from.

A check is flaky on a subject when its verdict turned between pass and fail at least MIN_FLAKY_TURNS times in its last
WINDOW_RUNS verdicts. The noise of a measurement is 1.4826 × MAD over up to WINDOW_RUNS earlier documents, the standard
deviation of normal values (Rousseeuw and Croux, 1993). It is at least the median noise of that measurement on other
subjects, since few values often lie too close together. A shift counts beyond NOISE_FACTOR × noise. With fewer than
MIN_VALUES values, or where no subject's values vary, noise is unknown and no shift is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

WINDOW_RUNS = 10
"""Number of verdicts, or of earlier documents, that the rules look at."""
MIN_FLAKY_TURNS = 3
"""For example pass, fail, pass, fail. A part that broke once and was repaired once has turned twice."""
MIN_VALUES, NOISE_FACTOR = 5, 5.0
MAX_SAMPLE_NODES = 60
"""Nodes from which the noise floor is estimated; the median of so many is accurate to about a tenth."""
MAD_TO_DEVIATION = 1.4826
SMALL_SAMPLE_FACTORS = {5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""Correction of the MAD for few values (Croux and Rousseeuw, 1992); for more values it is n / (n - 0.8)."""


class MeasurementSeries(NamedTuple):
    """One measurement of a check on a subject; `n` is its position in the outcome."""

    check: str
    subject: str
    n: int
    name: str


NoiseFloors = Mapping[tuple[str, str], float]
"""The least noise of a measurement, by check and name."""


def count_flaky_turns(verdicts: Sequence[str]) -> int:
    """Return how often the verdicts, in order, turned; 0 where that is too seldom to be flaky.

    `verdicts` are the last WINDOW_RUNS of `pass` and `fail`: errors and skips say nothing of the part.
    """
    turns = sum(earlier != later for earlier, later in pairwise(verdicts))
    return turns if turns >= MIN_FLAKY_TURNS else 0


def estimate_noise(values: Sequence[float], floor: float | None) -> float | None:
    """Return the noise of a series from its last WINDOW_RUNS values and the noise floor; None where it is unknown."""
    return max(robust_deviation(values), floor) if len(values) >= MIN_VALUES and floor else None


def exceeds_noise(one: float, other: float, noise: float) -> bool:
    """Return whether two values are further apart than noise explains."""
    return abs(one - other) > NOISE_FACTOR * noise


def robust_deviation(values: Sequence[float]) -> float:
    """Return the robust standard deviation of values, at least MIN_VALUES of them."""
    middle, count = median(values), len(values)
    correction = SMALL_SAMPLE_FACTORS.get(count, count / (count - 0.8))
    return MAD_TO_DEVIATION * correction * median(abs(value - middle) for value in values)


def estimate_noise_floors(known: Mapping[MeasurementSeries, Sequence[float]]) -> NoiseFloors:
    """Return the median deviation over all series of each check and measurement, where it is above 0."""
    spreads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for series, values in known.items():
        if len(values) >= MIN_VALUES:
            spreads[series.check, series.name].append(robust_deviation(values))
    return {key: floor for key, of_key in spreads.items() if (floor := median(of_key)) > 0}


def sample_nodes(nodes: Iterable[str]) -> list[str]:
    """Return a sample of the nodes, spread evenly. "" stands for measurements of racks and fabrics."""
    every = sorted({*nodes, ""})
    return every[:: max(1, len(every) // MAX_SAMPLE_NODES)]
