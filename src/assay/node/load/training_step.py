"""Training steps as units of the battery: a wrong number goes through everything after it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.gpt_layers import GptShape
from assay.node.load.gpt_step import find_gradients, make_batch, make_state, stay, update
from assay.node.load.lane import Lane
from assay.node.load.sizes import BatterySizes

HEADS = 2


def make_shape(sizes: BatterySizes) -> GptShape:
    """Return the model of one device."""
    return GptShape(
        sizes.vocabulary,
        sizes.width,
        sizes.layers,
        sizes.tokens,
        sizes.batch,
        heads=HEADS,
        head_width=sizes.width // HEADS,
        hidden=4 * sizes.width,
    )


def list_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield `step.train` (several steps, each from the state of the one before) and `step.replay` (one step)."""
    shape = make_shape(sizes)
    yield BatteryTest("step.train", partial(_train, shape=shape, steps=sizes.steps), spoils_itself=True)
    yield BatteryTest("step.replay", partial(_train, shape=shape, steps=1), spoils_itself=True)


def _train(lane: Lane, shape: GptShape, steps: int) -> Any:
    """Return all weights after `steps` on one batch, in one row."""
    state, batch = make_state(lane, shape), make_batch(lane, shape)
    for _ in range(steps):
        _, gradients = find_gradients(lane, shape, state["weights"], batch, stay)
        state = update(lane, state, gradients)
    return lane.xp.concatenate([state["weights"][name].reshape(-1) for name in sorted(state["weights"])])
