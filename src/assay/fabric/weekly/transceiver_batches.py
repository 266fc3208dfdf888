"""Cables by vendor, part and batch; and whether more of some group stand out than chance would have it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import exp, lgamma
from statistics import median

from assay.fabric.weekly.week import PortWeek
from assay.model.fabric.ports_and_cables import PortId


@dataclass(frozen=True, slots=True)
class TransceiverBatch:
    """The modules of one vendor, part and batch. `bad` of the `ports` stand out in some way.

    `compute_hypergeometric_tail` is how likely so many of them would, were they no worse than all others.
    """

    vendor: str
    part: str
    batch: str
    ports: int
    bad: int
    with_errors: int
    temperature_c: float | None
    chance: float

    @property
    def share(self) -> float:
        """Which part of its ports stands out."""
        return self.bad / self.ports

    def __str__(self) -> str:
        return f"{self.vendor} {self.part} {self.batch}: {self.bad} of {self.ports} ports stand out"


def group_by_batch(ports: Iterable[PortWeek], bad: Collection[PortId]) -> tuple[TransceiverBatch, ...]:
    """Return every batch, the one with the largest share of `bad` ports first."""
    groups: dict[tuple[str, str, str], list[PortWeek]] = defaultdict(list)
    for port in ports:
        if port.summary.vendor:
            groups[port.summary.vendor, port.summary.part, port.summary.batch].append(port)
    every = sum(map(len, groups.values()))
    of_all = sum(one.end.port_id in bad for members in groups.values() for one in members)
    made = [_batch(key, members, bad, of_all, every, len(groups)) for key, members in groups.items()]
    return tuple(sorted(made, key=lambda one: (-one.share, one.vendor, one.part, one.batch)))


def _batch(
    key: tuple[str, str, str],
    members: Sequence[PortWeek],
    bad: Collection[PortId],
    of_all: int,
    every: int,
    looks: int,
) -> TransceiverBatch:
    warm = [value for one in members if (value := one.summary.usual("temperature")) is not None]
    count = sum(one.end.port_id in bad for one in members)
    return TransceiverBatch(
        *key,
        ports=len(members),
        bad=count,
        with_errors=sum(one.summary.errors > 0 for one in members),
        temperature_c=median(warm) if warm else None,
        chance=min(1.0, looks * compute_hypergeometric_tail(count, len(members), of_all, every)),
    )


def compute_hypergeometric_tail(bad: int, of: int, bad_of_all: int, of_all: int) -> float:
    """Return how likely `bad` or more of `of` things are bad by chance, where `bad_of_all` of `of_all` are.

    The upper tail of the hypergeometric distribution: Fisher's exact test, one-sided. Who looks at many groups
    multiplies it by their number (Bonferroni).
    """
    most = min(of, bad_of_all)
    whole = _log_ways(of_all, of)
    terms = (
        exp(_log_ways(bad_of_all, count) + _log_ways(of_all - bad_of_all, of - count) - whole)
        for count in range(bad, most + 1)
        if of - count <= of_all - bad_of_all
    )
    return min(1.0, sum(terms)) if bad > 0 else 1.0


def _log_ways(of: int, taken: int) -> float:
    """Return the logarithm of the number of ways to take so many."""
    return lgamma(of + 1) - lgamma(taken + 1) - lgamma(of - taken + 1)
