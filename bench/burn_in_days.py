"""Makes days of burn-in: windows of healthy nodes with noise, and of nodes with a drift in one part."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.model.specs.burn_in import BurnIn, BurnInPhase, BurnInWindow

GPUS, WINDOW_HOURS = 8, 0.25
LIKENESS = 0.7
"""How much a reading resembles the one a window before: AR(1)."""


@dataclass(frozen=True)
class PlantedDrift:
    """A drift of gpu5, from the first hour on: per day, in °C, percent or errors."""

    measure: str
    per_day: float


def make_day(
    spec: BurnIn, seed: int, drift: PlantedDrift | None = None, likeness: float = LIKENESS
) -> list[BurnInWindow]:
    """Return the windows of one node's day.

    Noise: temperatures wander by 0.6 °C, clocks and rates by 0.4 %; each slot has a level of its own, which changes
    with the load; the inlet goes up and down by 2 °C over the day. One GPU in twenty has steady corrected errors.
    """
    chance = random.Random(seed)  # noqa: S311
    slots = [chance.gauss(0, 3) for _ in range(GPUS)]
    loads = {phase.name: [chance.gauss(0, 0.5) for _ in range(GPUS)] for phase in spec.phases}
    wander = [[_wandering(chance, likeness) for _ in range(4)] for _ in range(GPUS)]
    errors_per_hour = [2.0 if chance.random() < 0.05 else 0.01 for _ in range(GPUS)]
    counts, windows = [0] * GPUS, []
    for hours, phase in _list_windows(spec):
        inlet = 2 * ((hours % 24) / 12 - 1) ** 2
        gpus = {}
        for gpu in range(GPUS):
            worse = {drift.measure: drift.per_day * hours / 24} if drift and gpu == 5 else {}
            heat, memory, clock, rate = (next_value() for next_value in wander[gpu])
            level = 60 + inlet + slots[gpu] + loads[phase.name][gpu]
            gpus[f"gpu{gpu}"] = {
                "temperature": round(level + 0.6 * heat + worse.get("temperature", 0)),
                "memory_temperature": round(level + 12 + 0.6 * memory + worse.get("memory_temperature", 0)),
                "power": 690 + chance.gauss(0, 5),
                "clock": 1700 * (1 + 0.004 * clock - worse.get("clock", 0) / 100),
                "gflops": 51_000 * (1 + 0.004 * rate - worse.get("gflops", 0) / 100),
            }
            rises = 2 * worse.get("corrected", 0) / 24
            counts[gpu] += _poisson(chance, (errors_per_hour[gpu] + rises) * WINDOW_HOURS)
        corrected = {f"gpu{gpu}": counts[gpu] for gpu in range(GPUS)}
        windows.append(BurnInWindow(hours, phase.name, {}, gpus, corrected))
    return windows


def _list_windows(spec: BurnIn) -> Iterator[tuple[float, BurnInPhase]]:
    start = 0.0
    for phase in spec.phases:
        for number in range(1, int(phase.hours / WINDOW_HOURS) + 1):
            yield start + number * WINDOW_HOURS, phase
        start += phase.hours


def _wandering(chance: random.Random, likeness: float) -> Callable[[], float]:
    """Return a source of values of variance 1, each like the one before."""
    value, fresh = chance.gauss(0, 1), math.sqrt(1 - likeness**2)

    def follow() -> float:
        nonlocal value
        value = likeness * value + fresh * chance.gauss(0, 1)
        return value

    return follow


def _poisson(chance: random.Random, mean: float) -> int:
    count, time = 0, chance.expovariate(1.0)
    while time < mean:
        count, time = count + 1, time + chance.expovariate(1.0)
    return count
