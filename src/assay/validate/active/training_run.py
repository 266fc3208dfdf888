"""Reads what training recorded, as series of steps: the states, and beside them the gradients and losses of each rank.

A rank is a place in the run. All ranks have one state; gradients and losses differ where ranks have other batches or
other parts of the layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from assay.validate.active.unit_results import Digest, LoadRun, LoadUnit, UnitName, read_load_run, read_units

GOLDEN_STEPS = 20
"""So many steps from the first are golden, then 20, 30, … 100, 200, …: what is wrong stays in the state, so that a
later step vouches for all before."""


@dataclass(frozen=True, slots=True)
class StepSeries:
    """One thing that each step tells: a unit has a digest of each rank, None for a loss that is no number.

    `name`: its last word in golden digests, "" for the state.
    """

    name: str
    units: tuple[LoadUnit, ...]

    def find_golden(self, golden: Mapping[UnitName, str], unit: LoadUnit, rank: int) -> str:
        """Return the golden digest of a rank at a step, "" for none."""
        test = self._name_test(unit)
        return golden.get((f"{test}.{rank}", unit.seed)) or golden.get((test, unit.seed), "")

    def list_golden(self, voters: int) -> Iterator[LoadUnit]:
        """Yield units on which nodes must agree: one of each step if all ranks have the same, else one of each rank."""
        are_alike = all(len(set(unit.digests)) == 1 for unit in self.units)
        for unit in self.units:
            if not is_golden_step(unit.seed):
                continue
            for rank, digest in enumerate(unit.digests[:1] if are_alike else unit.digests):
                test = self._name_test(unit) + ("" if are_alike else f".{rank}")
                yield LoadUnit(test, unit.seed, (digest,) * voters)

    def _name_test(self, unit: LoadUnit) -> str:
        return f"{unit.test}.{self.name}" if self.name else unit.test


@dataclass(frozen=True)
class TrainingRun:
    """One run of training. `load`: what computed it; its units are the states as the GPUs vote on them."""

    load: LoadRun
    states: StepSeries
    gradients: StepSeries
    losses: StepSeries

    @property
    def in_causal_order(self) -> tuple[StepSeries, StepSeries, StepSeries]:
        """What a step makes first stands first: a loss leads to gradients, and these to a state."""
        return self.losses, self.gradients, self.states

    def list_given_ranks(self, unit: LoadUnit) -> list[int]:
        """Return the ranks that gave a state at a unit's step: the others are silent."""
        states = self._digests.get(unit.name, unit.digests)
        return [rank for rank, state in enumerate(states) if state is not None]

    @cached_property
    def _digests(self) -> Mapping[UnitName, tuple[Digest, ...]]:
        return {unit.name: unit.digests for unit in self.states.units}

    def list_golden_units(self) -> LoadRun:
        """Return the run as golden digests are learned from it."""
        voters = len(self.load.devices)
        states = [unit for unit in self.load.units if is_golden_step(unit.seed)]
        beside = [unit for series in (self.gradients, self.losses) for unit in series.list_golden(voters)]
        return replace(self.load, units=(*states, *beside))


def is_golden_step(seed: str) -> bool:
    """Whether golden digests hold the step of a seed `SEED.STEP`."""
    step = seed.rpartition(".")[2]
    return int(step) < GOLDEN_STEPS or not step[1:].strip("0")


def read_training_run(branch: Mapping[str, Any]) -> TrainingRun:
    """Return the run of a branch such as `active.training`. Raises UnreadableRun where it holds none."""
    load = read_load_run(branch)
    gradients, losses = (read_units(branch, name, len(load.devices)) for name in ("own", "loss_bits"))
    return TrainingRun(load, StepSeries("", load.units), StepSeries("own", gradients), StepSeries("loss", losses))
