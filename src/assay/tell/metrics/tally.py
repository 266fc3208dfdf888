"""Counters and distributions by label values, as one family has them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from assay.model.timestamps import parse_epoch_seconds
from assay.tell.metrics.family import Distribution, Family, Series


class Tally:
    """Numbers of a family that only grow, by the values of its labels.

    Those that are `expected` are there from the start, as 0: Prometheus sees no increase from nothing to 1.
    """

    def __init__(self, family: Family, expected: Iterable[tuple[str, ...]] = ()) -> None:
        self.family = family
        self._counts: Counter[tuple[str, ...]] = Counter(dict.fromkeys(expected, 0))

    def add(self, *values: str, count: float = 1) -> None:
        """Count once more, or `count` times."""
        self._counts[values] += count  # type: ignore[assignment]  # seconds are no whole numbers

    def series(self) -> Iterator[Series]:
        """Yield one series for each combination of label values that was counted."""
        return (Series(self.family, values, count) for values, count in sorted(self._counts.items()))


class Distributions:
    """The distributions of a family, by the values of its labels."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._counts: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * (len(family.edges) + 1))
        self._totals: Counter[tuple[str, ...]] = Counter()

    def add(self, value: float, *values: str) -> None:
        """Put a value into its bucket. One below zero, which a clock that was set back gives, counts as zero."""
        value = max(0.0, value)
        self._counts[values][bisect_left(self.family.edges, value)] += 1
        self._totals[values] += value  # type: ignore[assignment]  # seconds are no whole numbers

    def series(self) -> Iterator[Series]:
        """Yield one series for each combination of label values."""
        for values, counts in sorted(self._counts.items()):
            yield Series(self.family, values, Distribution(tuple(counts), self._totals[values]))


def count_series(family: Family, labels: Iterable[tuple[str, ...]]) -> Iterator[Series]:
    """Yield how often each combination of label values occurs."""
    return (Series(family, values, count) for values, count in sorted(Counter(labels).items()))


def oldest_series_at(family: Family, since: Iterable[tuple[tuple[str, ...], str]], now_s: float) -> Iterator[Series]:
    """Yield the greatest age for each combination of label values; `since` gives times in the form of `format_time`."""
    first: dict[tuple[str, ...], str] = {}
    for values, at in since:
        if values not in first or at < first[values]:
            first[values] = at
    return oldest_series(family, ((values, parse_epoch_seconds(at)) for values, at in first.items()), now_s)


def oldest_series(family: Family, since: Iterable[tuple[tuple[str, ...], float]], now_s: float) -> Iterator[Series]:
    """Yield the greatest age for each combination of label values; `since` gives times in seconds since 1970."""
    first: dict[tuple[str, ...], float] = {}
    for values, at_s in since:
        if values not in first or at_s < first[values]:
            first[values] = at_s
    return (Series(family, values, max(0.0, now_s - at_s)) for values, at_s in sorted(first.items()))
