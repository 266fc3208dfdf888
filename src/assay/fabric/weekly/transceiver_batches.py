"""Groups modules by vendor, part and batch, and finds batches in which more ports stand out than by chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import exp, lgamma
from statistics import median

from assay.fabric.weekly.week import PortWeek
from assay.model.specs.fabric.ports_and_cables import PortId


@dataclass(frozen=True, slots=True)
class TransceiverBatch:
    """The modules of one vendor, part and batch. `flagged` of the `ports` have a finding.

    `chance` is the probability of so many, if the batch were no worse than the others. `temperature_c` is the median of
    the modules' temperatures, None if none was read.
    """

    vendor: str
    part: str
    batch: str
    ports: int
    flagged: int
    with_errors: int
    temperature_c: float | None
    chance: float

    @property
    def share(self) -> float:
        """The share of its ports that have a finding."""
        return self.flagged / self.ports

    def __str__(self) -> str:
        return f"{self.vendor} {self.part} {self.batch}: {self.flagged} of {self.ports} ports stand out"


def group_by_batch(ports: Iterable[PortWeek], flagged: Collection[PortId]) -> tuple[TransceiverBatch, ...]:
    """Return every batch, the one with the largest share of `flagged` ports first."""
    groups: dict[tuple[str, str, str], list[PortWeek]] = defaultdict(list)
    for port in ports:
        if port.summary.vendor:
            groups[port.summary.vendor, port.summary.part, port.summary.batch].append(port)
    total = sum(map(len, groups.values()))
    total_flagged = sum(port.end.port_id in flagged for members in groups.values() for port in members)
    batches = [_make_batch(key, members, flagged, total_flagged, total, len(groups)) for key, members in groups.items()]
    return tuple(sorted(batches, key=lambda batch: (-batch.share, batch.vendor, batch.part, batch.batch)))


def _make_batch(
    key: tuple[str, str, str],
    members: Sequence[PortWeek],
    flagged: Collection[PortId],
    total_flagged: int,
    total: int,
    batches: int,
) -> TransceiverBatch:
    temperatures = [value for port in members if (value := port.summary.median("temperature")) is not None]
    count = sum(port.end.port_id in flagged for port in members)
    return TransceiverBatch(
        *key,
        ports=len(members),
        flagged=count,
        with_errors=sum(port.summary.errors > 0 for port in members),
        temperature_c=median(temperatures) if temperatures else None,
        chance=min(1.0, batches * compute_hypergeometric_tail(count, len(members), total_flagged, total)),
    )


def compute_hypergeometric_tail(flagged: int, size: int, total_flagged: int, total: int) -> float:
    """Return the probability of `flagged` or more among `size`, if `total_flagged` of `total` are spread by chance.

    This is the upper tail of the hypergeometric distribution: Fisher's exact test, one-sided. A caller that tests many
    groups multiplies it by their number (Bonferroni).
    """
    if flagged <= 0:
        return 1.0
    all_ways = _log_combinations(total, size)
    terms = (
        exp(_log_combinations(total_flagged, count) + _log_combinations(total - total_flagged, size - count) - all_ways)
        for count in range(flagged, min(size, total_flagged) + 1)
        if size - count <= total - total_flagged
    )
    return min(1.0, sum(terms))


def _log_combinations(total: int, taken: int) -> float:
    """Return the logarithm of the number of ways to take so many of a total."""
    return lgamma(total + 1) - lgamma(taken + 1) - lgamma(total - taken + 1)
