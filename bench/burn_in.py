"""How often the drift rules of specs/burnin/day.yaml tell a healthy node, and how many planted drifts they find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import process_time

from assay.declare.loader import load_fleet
from assay.model.specs.burn_in import BurnIn
from assay.validate.active.drift_against_neighbours import find_drifts
from bench.burn_in_days import PlantedDrift, make_day
from bench.measurement import Measurement
from bench.programs import ROOT

HEALTHY_NODES, DRIFTING_NODES = 1000, 50
WANDERING = 0.95
"""How much a reading resembles the one 15 minutes before, in a world that wanders for hours."""
PLANTED = (
    (PlantedDrift("temperature", 6), 0.6),
    (PlantedDrift("temperature", 10), 0.99),
    (PlantedDrift("clock", 3), 0.9),
    (PlantedDrift("gflops", 3), 0.9),
    (PlantedDrift("corrected", 96), 0.5),
    (PlantedDrift("corrected", 192), 0.95),
)


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure on made days; `folder` is not used."""
    del folder
    spec = load_fleet(ROOT).burn_ins["day"]
    start = process_time()
    told = _count_told(spec, HEALTHY_NODES, None)
    each_s = (process_time() - start) / HEALTHY_NODES
    share = 1000 * told / HEALTHY_NODES
    yield Measurement("burn-in: healthy nodes told, of 1,000", share, "nodes", "at most", 5)
    yield Measurement("burn-in: one node's day", each_s, "CPU s", "at most", 0.2)
    wandering = 1000 * _count_told(spec, HEALTHY_NODES // 2, None, WANDERING) / (HEALTHY_NODES // 2)
    yield Measurement("burn-in: healthy nodes told that wander for hours, of 1,000", wandering, "nodes", "at most", 100)
    for drift, least in PLANTED:
        found = _count_told(spec, DRIFTING_NODES, drift) / DRIFTING_NODES
        name = f"burn-in: drifts found, {drift.measure} {drift.per_day:g} a day"
        yield Measurement(name, found, "share", "at least", least)


def _count_told(spec: BurnIn, nodes: int, drift: PlantedDrift | None, likeness: float | None = None) -> int:
    """Return on how many made nodes a drift is found; with a planted one, only that one counts."""
    told = 0
    for seed in range(nodes):
        day = make_day(spec, seed, drift) if likeness is None else make_day(spec, seed, drift, likeness)
        found = find_drifts(spec, day)
        told += any(drift is None or (one.measure == drift.measure and one.subject == "gpu5") for one in found)
    return told
