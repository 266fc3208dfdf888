"""What is steady: when a verdict flaps, and how far a measurement moves by itself. One rule, wherever values come from.

A check flaps on a subject when its verdict turned between pass and fail at least `MIN_FLAKY_TURNS` times in its last
`WINDOW_RUNS` judgements. A measurement's noise is the spread of its values over up to `WINDOW_RUNS` documents before: 1.4826 × MAD,
the standard deviation if they are normal (Rousseeuw and Croux, 1993). Where that is larger, it is what is usual for
this measurement on other subjects, as few values often lie closer together than they should. More than `NOISE_FACTOR` its
noise is further than it moves by itself. With fewer than `MIN_VALUES` values, or of a number that moves nowhere, its noise
is not known, and nothing is claimed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

WINDOW_RUNS = 10
"""So many last judgements, or documents before, tell what is usual."""
MIN_FLAKY_TURNS = 3
"""Passing, failing, passing again and failing again: a part that broke once and was mended once turned twice."""
MIN_VALUES, NOISE_FACTOR = 5, 5.0
MAX_SAMPLE_NODES = 60
"""Nodes whose past tells what is usual; a median of so many is steady to a tenth."""
MAD_TO_DEVIATION = 1.4826
SMALL_SAMPLE_FACTORS = {5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""What the spread of so few values is too small by (Croux and Rousseeuw, 1992); of more, n / (n - 0.8)."""


class MeasurementSeries(NamedTuple):
    """One measurement of a check on a subject, the `n`th of its outcome."""

    check: str
    subject: str
    n: int
    name: str


NoiseFloors = Mapping[tuple[str, str], float]
"""The noise that is usual, by check and the measurement's name."""


def count_flaky_turns(verdicts: Sequence[str]) -> int:
    """Return how often the last `WINDOW_RUNS` verdicts, in order, turned; 0 where that is too seldom to flap.

    They are `pass` and `fail`: errors and skips are no verdicts on the part, and turn nothing.
    """
    turned = sum(one != other for one, other in pairwise(verdicts))
    return turned if turned >= MIN_FLAKY_TURNS else 0


def estimate_noise(values: Sequence[float], floor: float | None) -> float | None:
    """Return the noise of a series by its last `WINDOW_RUNS` values and what is usual; None where it is not known."""
    return max(robust_deviation(values), floor) if len(values) >= MIN_VALUES and floor else None


def exceeds_noise(one: float, other: float, noise: float) -> bool:
    """Return whether two values are further apart than the measurement moves by itself."""
    return abs(one - other) > NOISE_FACTOR * noise


def robust_deviation(values: Sequence[float]) -> float:
    """Return the robust standard deviation of values, at least `MIN_VALUES` of them."""
    middle, number = median(values), len(values)
    return (
        MAD_TO_DEVIATION
        * SMALL_SAMPLE_FACTORS.get(number, number / (number - 0.8))
        * median(abs(value - middle) for value in values)
    )


def estimate_noise_floors(known: Mapping[MeasurementSeries, Sequence[float]]) -> NoiseFloors:
    """Return the median of the spreads of what is alike; none where that does not spread."""
    spreads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for series, values in known.items():
        if len(values) >= MIN_VALUES:
            spreads[series.check, series.name].append(robust_deviation(values))
    return {key: floor for key, of_key in spreads.items() if (floor := median(of_key)) > 0}


def sample_nodes(nodes: Iterable[str]) -> list[str]:
    """Return the nodes whose measurements tell the floors, spread over all of them; "" has what is on no node."""
    every = sorted({*nodes, ""})
    return every[:: max(1, len(every) // MAX_SAMPLE_NODES)]
