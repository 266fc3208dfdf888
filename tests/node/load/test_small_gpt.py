"""The small GPT, written by hand for all engines, has right gradients and learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.node.load.catalog import make_shape
from assay.node.load.gpt import find_gradients, make_batch, make_state, stay, update
from assay.node.load.lane import Lane
from assay.node.load.numpy_engine import NumpyArithmetic
from assay.node.load.planted_faults import HEALTHY
from assay.node.load.unit_tests import SMALL

SHAPE = make_shape(SMALL)


class UnroundedArithmetic(NumpyArithmetic):
    """Products in float64, so that a difference quotient shows the gradient."""

    def narrow(self, array: Any, dtype: str) -> Any:
        return array


def make_lane(arithmetic: NumpyArithmetic) -> Lane:
    return Lane(arithmetic, np.array([5], np.uint32), np.array(HEALTHY, np.uint32))


def test_each_gradient_is_that_of_the_loss() -> None:
    lane = make_lane(UnroundedArithmetic())
    batch = make_batch(lane, SHAPE)
    weights = {name: array.astype(np.float64) for name, array in make_state(lane, SHAPE)["weights"].items()}
    _, gradients = find_gradients(lane, SHAPE, weights, batch, stay)
    for name, weight in weights.items():
        place = np.unravel_index(np.argmax(np.abs(gradients[name])), weight.shape)
        before, step = weight[place], 1e-5
        losses = []
        for moved in (before + step, before - step):
            weight[place] = moved
            losses.append(float(find_gradients(lane, SHAPE, weights, batch, stay)[0]))
        weight[place] = before
        np.testing.assert_allclose((losses[0] - losses[1]) / (2 * step), gradients[name][place], rtol=1e-5)


def test_it_learns_in_bfloat16_products() -> None:
    lane = make_lane(NumpyArithmetic())
    state, batch, losses = make_state(lane, SHAPE), make_batch(lane, SHAPE), []
    for _ in range(20):
        loss, gradients = find_gradients(lane, SHAPE, state["weights"], batch, stay)
        state = update(lane, state, gradients)
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 10
