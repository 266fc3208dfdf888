"""Trials of planted faults on eight devices, in numpy: which are seen, by which test, and who is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.node.load.catalog import list_tests
from assay.node.load.digests import format_digest, make_key, sum_digest
from assay.node.load.lane import Lane
from assay.node.load.numpy_engine import NumpyArithmetic
from assay.node.load.planted_faults import HEALTHY, NOT_A_NUMBER, WARP, FaultWords
from assay.node.load.unit_tests import SMALL, BatteryTest
from assay.node.load.workloads import make_workload
from assay.validate.active.run_verdict import vote_on_unit
from assay.validate.active.unit_results import LoadDevice, LoadUnit

DEVICES, BAD = 8, 5
TOLERANCE = 1e-3  # of tools that compare a product with the first one of the same GPU
LOSS_MOVED = 1e-3
KINDS = tuple(LoadDevice(index, f"CPU-{index}", "cpu") for index in range(DEVICES))
ARITHMETIC = NumpyArithmetic()
TESTS = {test.name: test for test in list_tests(SMALL)}
WORKLOAD = make_workload("gpt", SMALL, 1)


def _flip(low: int, high: int) -> Callable[[random.Random], FaultWords]:
    return lambda chance: (chance.getrandbits(32), 1, 1, 1 << chance.randint(low, high), 0)


flip_any_bit = _flip(0, 31)
SHAPES: dict[str, Callable[[random.Random], FaultWords]] = {
    "bits 0–7": _flip(0, 7),
    "bits 8–14": _flip(8, 14),
    "bits 15–22": _flip(15, 22),
    "bits 23–30 (exponent)": _flip(23, 30),
    "bit 31 (sign)": _flip(31, 31),
    "32 neighbours, one bit": lambda chance: (chance.getrandbits(32), 1, WARP, 1 << chance.randrange(32), 0),
    "8 words, each 32nd": lambda chance: (chance.getrandbits(32), WARP, 8, 1 << chance.randrange(32), 0),
    "NaN": lambda chance: (chance.getrandbits(32), 1, 1, 0, NOT_A_NUMBER),
    "a stuck bit, always": lambda chance: (chance.getrandbits(32), 1, 1, 0, 1 << chance.randrange(32)),
}
UNITS = {
    "product": "gemm.float32.ones",
    "function": "math.exp.float32",
    "sort": "sort.float32",
    "modulo": "modulo.uint32",
    "memory": "memory.random",
    "one step": "step.replay",
    "four steps": "step.train",
}


@dataclass
class Share:
    """How many of the trials."""

    hits: int = 0
    trials: int = 0

    def add(self, *, hit: bool) -> None:
        """Count one trial."""
        self.trials += 1
        self.hits += hit

    @property
    def percent(self) -> float:
        """Of the trials, 0 to 100."""
        return 100 * self.hits / max(self.trials, 1)


def make_lane(key: int, fault: FaultWords) -> Lane:
    """Return the lane of one device."""
    return Lane(ARITHMETIC, np.array([key], np.uint32), np.array([word & 0xFFFFFFFF for word in fault], np.uint32))


def digest_unit(test: BatteryTest, seed: int, fault: FaultWords) -> str:
    """Return the digest of a unit on one device."""
    lane = make_lane(make_key(test.name, seed), fault)
    held = test.first_stage(lane)
    for stage in test.stages:
        held = stage(lane, held)
    return format_digest(int(sum_digest(np, held)))


def name_by_vote(test: str, seed: int, healthy: str, spoilt: str) -> set[int]:
    """Return the devices that the vote of all eight names."""
    digests = tuple(spoilt if place == BAD else healthy for place in range(DEVICES))
    verdicts = vote_on_unit(LoadUnit(test, str(seed), digests), KINDS)
    return {place for verdict in verdicts for place in verdict.wrong}


def differs_by_tolerance(first: Any, now: Any) -> bool:
    """Whether a tool that compares with a GPU's own first product, by a tolerance, sees a difference."""
    with np.errstate(all="ignore"):
        return bool((np.abs(first - now) > TOLERANCE).any())


def train_steps(faults: list[FaultWords], seed: int) -> tuple[int, list[float]]:
    """Return the digest of the state after so many steps, each with its fault, and the losses."""
    state, digest, losses = WORKLOAD.make_state(make_lane(make_key("train", seed), HEALTHY)), 0, []
    for step, fault in enumerate(faults):
        done = WORKLOAD.step(make_lane(make_key(f"batch/{seed}", step), fault), state)
        state, digest = done.state, int(done.digest)
        losses.append(float(done.loss))
    return digest, losses
