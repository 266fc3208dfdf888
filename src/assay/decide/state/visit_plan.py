"""Chooses what a visit to an idle node runs: what its GPUs have not seen for longest. Pure.

Each part has its turn: the visit in which it was started last. The oldest turn goes first, and always starts, so no
part starves, even on a node whose visits are all cut short. Of the parts of one visit, those that were cut short go
before those that were done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.decide.state.load_coverage import GpuCoverage

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
