"""How long ago idle verification covered the GPUs in service, by part of the load: for a page and for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from assay.act.schedules.due_slots import list_schedule_lines
from assay.decide.state.load_coverage import UNIT_PART, GpuCoverage
from assay.decide.state.node_state import NodeState
from assay.model.fleet import Fleet
from assay.model.timestamps import parse_time

EVERY_UNIT = f"{UNIT_PART}: every unit"
"""A row beside the parts: when the battery had last met each of its units on the GPU."""
AGES: Mapping[str, timedelta] = {
    name: timedelta(days=days) for name, days in (("1 day", 1), ("7 days", 7), ("28 days", 28), ("older", 36_500))
}
NEVER = "never"


class PartAges(NamedTuple):
    """How many GPUs a part covered how long ago. `late`: those that it did not cover within the schedule's days."""

    part: str
    gpus: Mapping[str, int]
    late: int
    late_nodes: tuple[str, ...]


class PoolCoverage(NamedTuple):
    """What one schedule has covered on the GPUs in service of one pool; all is to be covered within `days`."""

    schedule: str
    pool: str
    days: float
    gpus: int
    parts: tuple[PartAges, ...]


def list_idle_coverage(
    fleet: Fleet, in_service: Mapping[str, NodeState], covered: Mapping[str, GpuCoverage], now: datetime
) -> Iterator[PoolCoverage]:
    """Yield the coverage of each schedule and pool. GPUs of which nobody read the serial number count as not covered.

    `in_service` are the nodes that customers use, each with its state.
    """
    known: dict[str, list[GpuCoverage]] = {}
    for gpu in covered.values():
        known.setdefault(gpu.node, []).append(gpu)
    for line in list_schedule_lines(fleet):
        if (how := line.schedule.verification) is None:
            continue
        slots: list[tuple[NodeState, GpuCoverage]] = []
        for node in fleet.nodes_in_pool(line.target):
            if state := in_service.get(node.name):
                count, own = fleet.spec_of(node.name).gpus.count, known.get(node.name, [])
                own = own[:count] + [GpuCoverage("", node.name)] * (count - len(own))
                slots += ((state, gpu) for gpu in own)
        names = [*how.parts, *([EVERY_UNIT] if UNIT_PART in how.parts else [])]
        parts = tuple(_measure_part(name, slots, timedelta(days=how.cover_days), now) for name in names)
        yield PoolCoverage(line.name, line.target, how.cover_days, len(slots), parts)


def _measure_part(name: str, slots: list[tuple[NodeState, GpuCoverage]], limit: timedelta, now: datetime) -> PartAges:
    counts, late = Counter(dict.fromkeys([*AGES, NEVER], 0)), list[str]()
    for state, gpu in slots:
        at = gpu.find(UNIT_PART).every_unit_at if name == EVERY_UNIT else gpu.find(name).covered_at
        age = now - parse_time(at) if at else None
        counts[next((words for words, most in AGES.items() if age <= most), "older") if age is not None else NEVER] += 1
        if (age if age is not None else now - parse_time(state.since)) > limit:
            late.append(gpu.node)
    return PartAges(name, counts, len(late), tuple(sorted(set(late))))
