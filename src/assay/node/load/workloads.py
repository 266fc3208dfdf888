"""The training workloads: the small GPT alone on each device, with data spread, or with layers shared out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from assay.node.load.catalog import BATTERY_VERSION, make_shape
from assay.node.load.digests import sum_digest
from assay.node.load.gpt import (
    GptShape,
    State,
    Weights,
    digest_weights,
    find_gradients,
    is_shared_out,
    make_batch,
    make_state,
    stay,
    update,
)
from assay.node.load.lane import Lane
from assay.node.load.unit_tests import BatterySizes

WHOLE = 2.0**20
"""Sums over devices are of whole multiples of 2^-20, which are exact in any order: every algorithm gives one result."""
LARGEST = 2.0**8  # so that the sum of 8 stays within 32 bits
BATCH_STEP = 0x632BE5AB

NAMES = ("gpt", "data-parallel", "tensor-parallel")


@dataclass(frozen=True)
class StepResult:
    """What a step gives on one device. `digest`: on what all devices must agree. `own`: what is this device's alone."""

    state: State
    loss: Any
    digest: Any
    own: Any


@dataclass(frozen=True)
class TrainingWorkload:
    """A workload. `name` is one of `NAMES`, `devices` how many share the work."""

    name: str
    shape: GptShape
    devices: int

    @property
    def test(self) -> str:
        """The name of its units."""
        return f"train.{self.name}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Features that an engine may lack."""
        return () if self.name == "gpt" else ("collectives",)

    @property
    def tokens(self) -> int:
        """Tokens of one step on one device. Where devices share layers, each has its share of the tokens."""
        whole = self.shape.batch * self.shape.tokens
        return max(1, whole // self.devices) if self.name == "tensor-parallel" else whole

    def make_state(self, lane: Lane) -> State:
        """Return the first state."""
        part = lane.arithmetic.device_number() if self.name == "tensor-parallel" else None
        return make_state(lane, self.shape, part)

    def step(self, lane: Lane, state: State) -> StepResult:
        """Return what one step gives, on the batch of the lane's key."""
        xp = lane.xp
        shape = self.shape
        if self.name == "data-parallel":
            number = lane.arithmetic.device_number().astype(xp.uint32)
            batch = make_batch(Lane(lane.arithmetic, lane.key + number * xp.uint32(BATCH_STEP), lane.fault), shape)
        else:
            batch = make_batch(lane, shape)
        join = add_exactly(lane) if self.name == "tensor-parallel" else stay
        loss, gradients = find_gradients(lane, shape, state["weights"], batch, join)
        own = digest_weights(lane, gradients, shared_out=self.name == "tensor-parallel")
        if self.name == "data-parallel":
            add = add_exactly(lane)
            share = xp.float32(1 / self.devices)
            gradients = {name: add(gradient) * share for name, gradient in gradients.items()}
        state = update(lane, state, gradients)
        return StepResult(state, loss, self._digest(lane, state["weights"], loss), own)

    def _digest(self, lane: Lane, weights: Weights, loss: Any) -> Any:
        if self.name != "tensor-parallel":
            return digest_weights(lane, weights)
        common = {name: weight for name, weight in weights.items() if not is_shared_out(name)}
        return digest_weights(lane, common) + sum_digest(lane.xp, loss)


def add_exactly(lane: Lane) -> Callable[[Any], Any]:
    """Return the function that adds up an array over all devices, in whole numbers."""
    xp = lane.xp

    def add(array: Any) -> Any:
        kept = xp.clip(array, xp.float32(-LARGEST), xp.float32(LARGEST))
        whole = xp.round(kept * xp.float32(WHOLE)).astype(xp.int32)
        return lane.arithmetic.sum_devices(whole).astype(xp.float32) * xp.float32(1 / WHOLE)

    return add


def make_workload(name: str, sizes: BatterySizes, devices: int) -> TrainingWorkload:
    """Return a workload for so many devices. Where they share layers, each has one head and its part of the width."""
    shape = make_shape(sizes)
    if name == "gpt":
        return TrainingWorkload(name, shape, 1)
    if name == "tensor-parallel":
        hidden = max(1, shape.hidden // devices)
        shape = GptShape(
            **{**asdict(shape), "heads": 1, "head_width": max(2, shape.width // devices), "hidden": hidden}
        )
    return TrainingWorkload(name, shape, devices)


def hash_workload(workload: TrainingWorkload, flags: str) -> str:
    """Return the SHA-256 of what decides about a workload's digests, beside the device."""
    text = json.dumps([BATTERY_VERSION, asdict(workload), flags], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
