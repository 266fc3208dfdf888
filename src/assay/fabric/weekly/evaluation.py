"""The weekly evaluation: everything that the page, the text and the JSON tell, computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from assay.fabric.health.scanned import Scanned, scanned
from assay.fabric.weekly.findings import Found, Limits, drifting, flapping, outliers, over_limits
from assay.fabric.weekly.history import PortWeek, stored, weeks
from assay.model.cable import Cable, Port
from assay.model.evidence import Evidence

WORST = 10


@dataclass(frozen=True, slots=True)
class Batch:
    """The modules of one vendor, part and batch. `bad` of the `ports` stand out in some way."""

    vendor: str
    part: str
    batch: str
    ports: int
    bad: int
    with_errors: int
    temperature_c: float | None

    @property
    def share(self) -> float:
        """Which part of its ports stands out."""
        return self.bad / self.ports


@dataclass(frozen=True, slots=True)
class Ranked:
    """One port that stands out, with all that was found."""

    port: PortWeek
    found: tuple[Found, ...]

    @property
    def weight(self) -> float:
        """What orders the worst: the weights of all findings together."""
        return sum(one.weight for one in self.found)


@dataclass(frozen=True)
class Evaluation:
    """One fabric over the scans between `start` and `end`. `unseen` says what the scans could not tell."""

    fabric: str
    scans: int
    start: datetime
    end: datetime
    ports: tuple[PortWeek, ...]
    ranked: tuple[Ranked, ...]
    batches: tuple[Batch, ...]
    unseen: tuple[str, ...] = ()

    @property
    def worst(self) -> tuple[Ranked, ...]:
        """The ten worst ports."""
        return self.ranked[:WORST]

    def of(self, kind: str) -> list[Found]:
        """Return the findings of a kind, the worst first."""
        found = [one for ranked in self.ranked for one in ranked.found if one.kind == kind]
        return sorted(found, key=lambda one: -one.weight)

    @property
    def errors(self) -> int:
        """Errors of all links together."""
        return sum(port.errors for port in self.ports)


def evaluate(
    fabric: str,
    cables: Sequence[Cable],
    rails: Mapping[str, int],
    limits: Limits,
    latest: Evidence,
    get: Callable[[str], Evidence],
    days: float = 7,
) -> Evaluation:
    """Evaluate the scans of the last `days` before the newest. `get` returns a stored document by its digest."""
    documents = stored(latest, get, days)
    scans = [scanned(document) for document in documents]
    ports = weeks(cables, dict(rails), scans)
    found = [*over_limits(ports, limits), *flapping(ports, limits), *outliers(ports), *drifting(ports)]
    ranked = _ranked(found)
    bad = {one.port.end.at for one in ranked}
    start = scans[0].since or scans[0].at
    return Evaluation(
        fabric, len(scans), start, scans[-1].at, tuple(ports), ranked, _batches(ports, bad), tuple(_unseen(scans))
    )


def _ranked(found: Iterable[Found]) -> tuple[Ranked, ...]:
    by_port: dict[Port, list[Found]] = defaultdict(list)
    for one in found:
        by_port[one.port.end.at].append(one)
    ranked = [Ranked(ones[0].port, tuple(sorted(ones, key=lambda one: -one.weight))) for ones in by_port.values()]
    return tuple(sorted(ranked, key=lambda one: (-one.weight, one.port.end.at)))


def _batches(ports: Iterable[PortWeek], bad: set[Port]) -> tuple[Batch, ...]:
    groups: dict[tuple[str, str, str], list[PortWeek]] = defaultdict(list)
    for port in ports:
        if (module := port.last.optics).vendor:
            groups[module.vendor, module.part, port.batch].append(port)
    made = [_batch(key, members, bad) for key, members in groups.items()]
    return tuple(sorted(made, key=lambda one: (-one.share, one.vendor, one.part, one.batch)))


def _batch(key: tuple[str, str, str], members: Sequence[PortWeek], bad: set[Port]) -> Batch:
    warm = [one.last.optics.temperature_c for one in members if one.last.optics.temperature_c is not None]
    return Batch(
        *key,
        ports=len(members),
        bad=sum(one.end.at in bad for one in members),
        with_errors=sum(one.errors > 0 for one in members),
        temperature_c=median(warm) if warm else None,
    )


def _unseen(scans: Sequence[Scanned]) -> Iterable[str]:
    """Yield what some scan could not tell, each thing once, with how often."""
    said: dict[str, int] = defaultdict(int)
    for scan in scans:
        for why in (*scan.silent.values(), *scan.problems, *([scan.unknown] if scan.unknown else [])):
            said[why] += 1
    return (f"{why} ({times} of {len(scans)} scans)" for why, times in said.items())
