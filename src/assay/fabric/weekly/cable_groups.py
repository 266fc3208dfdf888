"""Compares the readings of cables by vendor, by length and by batch: which kind of cable is worse than the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from assay.fabric.weekly.compared_readings import READINGS, ComparedReading
from assay.fabric.weekly.peer_comparison import MIN_PEERS, Limits, format_figure
from assay.fabric.weekly.week import PortWeek

GroupedBy = Literal["vendor", "length", "batch"]


@dataclass(frozen=True, slots=True)
class CableGroup:
    """The ports with cables of one vendor, of one vendor and length, or of one vendor and batch.

    `medians` has the median of each reading by its key; a reading that no port has is left out. `worse` says in words
    which medians are worse than those of all other ports by more than the design's distance limit.
    """

    by: GroupedBy
    name: str
    ports: int
    with_errors: int
    medians: Mapping[str, float]
    worse: tuple[str, ...] = ()


def group_cables(ports: Sequence[PortWeek], limits: Limits) -> tuple[CableGroup, ...]:
    """Return every group: vendors, then lengths, then batches; within each the larger ones first."""
    groups: dict[tuple[GroupedBy, str], list[PortWeek]] = defaultdict(list)
    for port in ports:
        for key in _name_groups(port):
            groups[key].append(port)
    made = [_make_group(by, name, members, ports, limits) for (by, name), members in groups.items()]
    order: list[GroupedBy] = ["vendor", "length", "batch"]
    return tuple(sorted(made, key=lambda group: (order.index(group.by), -group.ports, group.name)))


def _name_groups(port: PortWeek) -> Iterator[tuple[GroupedBy, str]]:
    vendor = port.summary.vendor
    if vendor:
        yield "vendor", vendor
        if port.length_m:
            yield "length", f"{vendor} {port.length_m:g} m"
        if port.summary.batch:
            yield "batch", f"{vendor} {port.summary.part} {port.summary.batch}"


def _make_group(
    by: GroupedBy, name: str, members: Sequence[PortWeek], ports: Iterable[PortWeek], limits: Limits
) -> CableGroup:
    inside = set(map(id, members))
    others = [port for port in ports if id(port) not in inside]
    medians, worse = {}, []
    for reading in READINGS:
        own, rest = _read(members, reading), _read(others, reading)
        if not own:
            continue
        medians[reading.key] = middle = median(own)
        limit = limits.get(reading.distance_limit)
        enough = limit and len(own) >= MIN_PEERS and len(rest) >= MIN_PEERS
        if enough and limit and (middle - median(rest)) * reading.worse > limit.value:
            figures = f"{format_figure(middle)} {reading.unit}, where the others have {format_figure(median(rest))}"
            worse.append(f"{reading.name} {figures}")
    errors = sum(port.summary.errors > 0 for port in members)
    return CableGroup(by, name, len(members), errors, medians, tuple(worse))


def _read(ports: Iterable[PortWeek], reading: ComparedReading) -> list[float]:
    return [value for port in ports if (value := port.summary.median(reading.key)) is not None]
