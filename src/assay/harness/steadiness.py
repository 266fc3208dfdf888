"""What is steady: when a verdict flaps, and how far a measurement moves by itself. One rule, wherever values come from.

A check flaps on a subject when its verdict turned between pass and fail at least `FEWEST_TURNS` times in its last
`RUNS` judgements. A measurement's noise is the spread of its values over up to `RUNS` documents before: 1.4826 × MAD,
the standard deviation if they are normal (Rousseeuw and Croux, 1993). Where that is larger, it is what is usual for
this measurement on other subjects, as few values often lie closer together than they should. More than `TIMES` its
noise is further than it moves by itself. With fewer than `LEAST` values, or of a number that moves nowhere, its noise
is not known, and nothing is claimed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

RUNS = 10
"""So many last judgements, or documents before, tell what is usual."""
FEWEST_TURNS = 3
"""Passing, failing, passing again and failing again: a part that broke once and was mended once turned twice."""
LEAST, TIMES = 5, 5.0
SAMPLE = 60
"""Nodes whose past tells what is usual; a median of so many is steady to a tenth."""
NORMAL = 1.4826
FEW = {5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""What the spread of so few values is too small by (Croux and Rousseeuw, 1992); of more, n / (n - 0.8)."""


class Series(NamedTuple):
    """One measurement of a check on a subject, the `n`th of its outcome."""

    check: str
    subject: str
    n: int
    name: str


Floors = Mapping[tuple[str, str], float]
"""The noise that is usual, by check and the measurement's name."""


def flips(verdicts: Sequence[str]) -> int:
    """Return how often the last `RUNS` verdicts, in order, turned; 0 where that is too seldom to flap.

    They are `pass` and `fail`: errors and skips are no verdicts on the part, and turn nothing.
    """
    turned = sum(one != other for one, other in pairwise(verdicts))
    return turned if turned >= FEWEST_TURNS else 0


def noise_of(values: Sequence[float], floor: float | None) -> float | None:
    """Return the noise of a series by its last `RUNS` values and what is usual; None where it is not known."""
    return max(spread(values), floor) if len(values) >= LEAST and floor else None


def is_far(one: float, other: float, noise: float) -> bool:
    """Return whether two values are further apart than the measurement moves by itself."""
    return abs(one - other) > TIMES * noise


def spread(values: Sequence[float]) -> float:
    """Return the robust standard deviation of values, at least `LEAST` of them."""
    middle, number = median(values), len(values)
    return NORMAL * FEW.get(number, number / (number - 0.8)) * median(abs(value - middle) for value in values)


def floors(known: Mapping[Series, Sequence[float]]) -> Floors:
    """Return the median of the spreads of what is alike; none where that does not spread."""
    spreads: dict[tuple[str, str], list[float]] = defaultdict(list)
    for series, values in known.items():
        if len(values) >= LEAST:
            spreads[series.check, series.name].append(spread(values))
    return {key: floor for key, of_key in spreads.items() if (floor := median(of_key)) > 0}


def sample(nodes: Iterable[str]) -> list[str]:
    """Return the nodes whose measurements tell the floors, spread over all of them; "" has what is on no node."""
    every = sorted({*nodes, ""})
    return every[:: max(1, len(every) // SAMPLE)]
