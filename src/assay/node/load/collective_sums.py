"""Collectives and links on whole numbers held in floats: exact in any order, whatever the algorithm."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.lane import Lane
from assay.node.load.sizes import BatterySizes

SUMMANDS = 4096  # below 2^24 / 4096 devices: the sum stays exact


def list_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield sums and gatherings over all devices, and copies between neighbours."""
    size = sizes.vector
    yield BatteryTest("collective.all_reduce", partial(_all_reduce, size=size), needs=("collectives",))
    yield BatteryTest("collective.all_gather", partial(_all_gather, size=size), needs=("collectives",))
    yield BatteryTest("collective.reduce_scatter", partial(_reduce_scatter, size=size), needs=("collectives",))
    for distance in (1, 3):
        copy = partial(_copy_from_peer, size=size, distance=distance)
        yield BatteryTest(f"copy.peer.{distance}", copy, needs=("collectives",))
    yield BatteryTest("copy.host", partial(_copy_from_host, size=size), needs=("host copies",))


def _own_numbers(lane: Lane, size: int) -> Any:
    """Return whole numbers that differ by device."""
    xp = lane.xp
    mixed = lane.words(size) ^ (lane.arithmetic.device_number().astype(xp.uint32) * xp.uint32(0x9E3779B1))
    return ((mixed ^ (mixed >> 16)) % xp.uint32(SUMMANDS)).astype(xp.float32)


def _all_reduce(lane: Lane, size: int) -> Any:
    return lane.arithmetic.sum_devices(_own_numbers(lane, size))


def _all_gather(lane: Lane, size: int) -> Any:
    return lane.arithmetic.gather_devices(_own_numbers(lane, size // 8))


def _reduce_scatter(lane: Lane, size: int) -> Any:
    return lane.arithmetic.gather_devices(lane.arithmetic.spread_sum(_own_numbers(lane, size)))


def _copy_from_peer(lane: Lane, size: int, distance: int) -> Any:
    return lane.arithmetic.pass_on(lane.numbers((size,)), distance)


def _copy_from_host(lane: Lane, size: int) -> Any:
    return lane.numbers((size,))
