"""Sums along rows, running sums and sorting."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.lane import Lane
from assay.node.load.sizes import BatterySizes


def list_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield softmax, layer norm, running sums and sorting."""
    shape, size = (sizes.rows, sizes.columns), sizes.vector
    yield BatteryTest("softmax.float32", partial(_softmax, shape=shape))
    yield BatteryTest("layer_norm.float32", partial(_layer_norm, shape=shape))
    yield BatteryTest("cumsum.float32", partial(_cumsum, shape=shape))
    yield BatteryTest("cumsum.int32", partial(_cumsum_whole, size=size))
    yield BatteryTest("sort.float32", partial(_sort, size=size))
    yield BatteryTest("sort.int32", partial(_sort_whole, size=size))


def softmax(xp: Any, scores: Any) -> Any:
    """Return the softmax over the last axis."""
    powers = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def normalize(lane: Lane, rows: Any) -> tuple[Any, Any]:
    """Return rows with mean 0 and variance 1, and the reverse of their spread."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    spread = lane.arithmetic.reverse_root(variance + lane.xp.float32(1e-5))
    return centred * spread, spread


def _softmax(lane: Lane, shape: tuple[int, int]) -> Any:
    return softmax(lane.xp, lane.numbers(shape) * 8)


def _layer_norm(lane: Lane, shape: tuple[int, int]) -> Any:
    return normalize(lane, lane.numbers(shape))[0]


def _cumsum(lane: Lane, shape: tuple[int, int]) -> Any:
    return lane.xp.cumsum(lane.numbers(shape), axis=1, dtype=lane.xp.float32)


def _cumsum_whole(lane: Lane, size: int) -> Any:
    return lane.xp.cumsum(lane.words(size).astype(lane.xp.int32), dtype=lane.xp.int32)


def _sort(lane: Lane, size: int) -> Any:
    return lane.xp.sort(lane.numbers((size,)))


def _sort_whole(lane: Lane, size: int) -> Any:
    return lane.xp.sort(lane.words(size).view(lane.xp.int32))
