"""Chooses what a visit to an idle node runs: what its GPUs have not seen for longest. Pure.

The part that was started longest ago goes first and always starts, so no part starves where all visits are cut short.
What was cut short goes before what was done. The coverage is a channel of evidence too, which checks judge.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assay.decide.state.load_coverage import GpuCoverage, PartCoverage
from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.reading import ReadingTree, value
from assay.model.timestamps import parse_time

UNIT_PART = "battery"
"""The part that counts in units and goes on where it stood."""


@dataclass(frozen=True, slots=True)
class VisitPlan:
    """The parts of a visit in their order. `after_unit`: the unit after which the battery goes on, "" for its first."""

    parts: tuple[str, ...]
    after_unit: str = ""


def plan_visit(
    part_seconds: Mapping[str, float], budget_s: float | None, gpus: Sequence[GpuCoverage], seeds: int
) -> VisitPlan:
    """Return the plan of a visit to a node with these GPUs.

    `part_seconds`: the parts of the schedule and how long each takes. `budget_s`: how long a visit may load the node;
    None: each visit runs all parts. After the seed `seeds - 1`, the battery begins again with seed 0.
    """
    waiting = sorted(part_seconds, key=lambda part: min((_turn(gpu, part) for gpu in gpus), default=("", False)))
    chosen: list[str] = []
    left_s = float("inf") if budget_s is None else budget_s
    for part in waiting:
        if not chosen or part_seconds[part] <= left_s:
            chosen.append(part)
            left_s -= part_seconds[part]
    return VisitPlan(tuple(chosen), _find_last_unit(gpus, seeds))


def _turn(gpu: GpuCoverage, part: str) -> tuple[str, bool]:
    covered = gpu.find(part)
    return covered.turn_at, covered.turn_was_used


def _find_last_unit(gpus: Sequence[GpuCoverage], seeds: int) -> str:
    """Return where the battery of these GPUs stands: where the one stands that has computed the fewest units."""
    if not gpus:
        return ""
    least = min(gpus, key=lambda gpu: (gpu.find(UNIT_PART).units, gpu.serial))
    unit = least.find(UNIT_PART).last_unit
    seed = unit.partition(":")[0]
    return unit if seed.isdecimal() and int(seed) < seeds else ""


@dataclass(frozen=True, slots=True)
class VisitCosts:
    """The visits of one schedule in one pool: how many, how many made room for a customer, and how fast.

    `gone_ms` are the waits that are known, in milliseconds, in ascending order.
    """

    schedule: str
    pool: str
    visits: int
    made_room: int
    gone_ms: tuple[int, ...]

    def find_percentile(self, percent: float) -> int | None:
        """Return the wait that this share of the visits did not exceed (nearest rank); None if none is known."""
        if not self.gone_ms:
            return None
        return self.gone_ms[max(0, math.ceil(percent / 100 * len(self.gone_ms)) - 1)]


def collect_visit_costs(entries: Iterable[LedgerEntry], pools: Mapping[str, str]) -> list[VisitCosts]:
    """Return the costs by schedule and pool. `pools` is the pool of each node; visits of other nodes have pool ""."""
    groups: dict[tuple[str, str], list[NodeLoadedEntry]] = defaultdict(list)
    for entry in entries:
        if entry.kind == NodeLoadedEntry.kind:
            visit = NodeLoadedEntry.read(entry)
            groups[visit.schedule, pools.get(entry.node, "")].append(visit)
    costs = []
    for (schedule, pool), visits in sorted(groups.items()):
        gone_ms = tuple(sorted(visit.gone_ms for visit in visits if visit.gone_ms is not None))
        made_room = sum(bool(visit.reason) for visit in visits)
        costs.append(VisitCosts(schedule, pool, len(visits), made_room, gone_ms))
    return costs


def describe_coverage(
    gpus: Mapping[str, GpuCoverage], parts: Sequence[str], since: datetime, now: datetime
) -> ReadingTree:
    """Return the readings of GPUs by slot: `serial`, and for each of `parts` what `_describe_part` says.

    `since`: when the node came into service. A part that never covered a GPU is as old as that.
    """
    return {
        slot: {
            "serial": value(gpu.serial),
            "parts": {part: _describe_part(part, gpu.find(part), since, now) for part in parts},
        }
        for slot, gpu in gpus.items()
    }


def _describe_part(name: str, part: PartCoverage, since: datetime, now: datetime) -> ReadingTree:
    """Return `age_hours`, `seen` (whether it ever covered the GPU), `visits`, and `units` over all visits."""
    at = parse_time(part.covered_at) if part.covered_at else since
    units = {"units": value(part.units)} if name == UNIT_PART else {}
    age = round(max(0.0, (now - at).total_seconds()) / 3600, 2)
    return {"age_hours": value(age), "seen": value(bool(part.covered_at)), "visits": value(part.visits), **units}
