"""Patterns through memory: written by one program, read and inverted by others, in several blocks at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.lane import Lane
from assay.node.load.sizes import BatterySizes


def list_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield address, moving inversions, random and complement."""
    patterns = {
        "address": (_addresses, ()),
        "moving_inversions": (_one_pattern, (_invert, _invert_again)),
        "random": (_random, ()),
        "complement": (_random, (_invert,)),
    }
    for name, (write, stages) in patterns.items():
        compute = partial(write, size=sizes.block)
        yield BatteryTest(f"memory.{name}", compute, stages, blocks=sizes.blocks)


def _addresses(lane: Lane, size: int) -> Any:
    return lane.xp.arange(size, dtype=lane.xp.uint32) + lane.key


def _one_pattern(lane: Lane, size: int) -> Any:
    xp = lane.xp
    return xp.zeros(size, dtype=xp.uint32) + lane.words(1)


def _random(lane: Lane, size: int) -> Any:
    return lane.words(size)


def _invert(lane: Lane, held: Any) -> Any:
    del lane
    return ~held


def _invert_again(lane: Lane, held: Any) -> Any:
    return ~held ^ lane.words(1, 1)
