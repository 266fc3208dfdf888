"""Integer modulo, counting, scatter and gather: the first victims in published cases. All are exact in any order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.lane import Lane
from assay.node.load.sizes import BatterySizes


def list_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield modulo, bincount, scatter and gather."""
    size = sizes.vector
    yield BatteryTest("modulo.uint32", partial(_modulo, size=size))
    yield BatteryTest("modulo.int64", partial(_modulo_long, size=size))
    yield BatteryTest("bincount.int32", partial(_count, size=size, bins=sizes.bins))
    yield BatteryTest("scatter.add.int32", partial(_scatter_add, size=size, bins=sizes.bins))
    yield BatteryTest("scatter.set.float32", partial(_scatter_set, size=size))
    yield BatteryTest("gather.float32", partial(_gather, size=size))


def _modulo(lane: Lane, size: int) -> Any:
    return lane.words(size) % ((lane.words(size, 1) >> 12) | 1)


def _modulo_long(lane: Lane, size: int) -> Any:
    xp = lane.xp
    left = lane.words(size).astype(xp.int64) * lane.words(size, 1).astype(xp.int64)
    return xp.abs(left) % (lane.words(size, 2).astype(xp.int64) | 1)


def _count(lane: Lane, size: int, bins: int) -> Any:
    xp = lane.xp
    return lane.arithmetic.count((lane.words(size) % xp.uint32(bins)).astype(xp.int32), bins)


def _scatter_add(lane: Lane, size: int, bins: int) -> Any:
    xp = lane.xp
    places = (lane.words(size) % xp.uint32(bins)).astype(xp.int32)
    return lane.arithmetic.scatter_add(bins, places, lane.words(size, 1).view(xp.int32))


def _shuffled(lane: Lane, size: int) -> Any:
    """Return every place once: multiplying by an odd number is a permutation modulo a power of two."""
    xp = lane.xp
    factor = (lane.words(1, 3) | 1)[0]
    return ((xp.arange(size, dtype=xp.uint32) * factor) % xp.uint32(size)).astype(xp.int32)


def _scatter_set(lane: Lane, size: int) -> Any:
    return lane.arithmetic.scatter_set(size, _shuffled(lane, size), lane.numbers((size,)))


def _gather(lane: Lane, size: int) -> Any:
    xp = lane.xp
    return lane.numbers((size,))[(lane.words(size, 1) % xp.uint32(size)).astype(xp.int32)]
