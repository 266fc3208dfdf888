"""All tests of the battery, by name, and what identifies the battery as a program.

Besides arithmetic these are collectives, patterns through memory, and training steps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from assay.node.load.arithmetic import list_function_tests, list_integer_tests, list_matrix_tests, list_reduction_tests
from assay.node.load.gpt import GptShape, find_gradients, make_batch, make_state, stay, update
from assay.node.load.lane import Lane
from assay.node.load.unit_tests import BatterySizes, BatteryTest, Stage

SUMMANDS = 4096  # below 2^24 / 4096 devices: the sum stays exact
HEADS = 2
BATTERY_VERSION = 2
"""Raise it when a test's mathematics, inputs or digest change: golden digests of an older version are then unknown."""


def list_collective_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield sums and gatherings over all devices, and copies between neighbours.

    They are of whole numbers held in floats: exact in any order, whatever the algorithm.
    """
    size = sizes.vector

    def reduce_all(lane: Lane) -> Any:
        return lane.arithmetic.sum_devices(_own_numbers(lane, size))

    def gather_all(lane: Lane) -> Any:
        return lane.arithmetic.gather_devices(_own_numbers(lane, size // 8))

    def reduce_and_scatter(lane: Lane) -> Any:
        return lane.arithmetic.gather_devices(lane.arithmetic.spread_sum(_own_numbers(lane, size)))

    def copy_from_peer(lane: Lane, distance: int) -> Any:
        return lane.arithmetic.pass_on(lane.numbers((size,)), distance)

    yield BatteryTest("collective.all_reduce", reduce_all, needs=("collectives",))
    yield BatteryTest("collective.all_gather", gather_all, needs=("collectives",))
    yield BatteryTest("collective.reduce_scatter", reduce_and_scatter, needs=("collectives",))
    for distance in (1, 3):
        copy = partial(copy_from_peer, distance=distance)
        yield BatteryTest(f"copy.peer.{distance}", copy, needs=("collectives",))
    yield BatteryTest("copy.host", lambda lane: lane.numbers((size,)), needs=("host copies",))


def _own_numbers(lane: Lane, size: int) -> Any:
    """Return whole numbers that differ by device."""
    xp = lane.xp
    mixed = lane.words(size) ^ (lane.arithmetic.device_number().astype(xp.uint32) * xp.uint32(0x9E3779B1))
    return ((mixed ^ (mixed >> 16)) % xp.uint32(SUMMANDS)).astype(xp.float32)


def list_memory_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield address, moving inversions, random and complement.

    One program writes a pattern, others read and invert it, in several blocks at a time.
    """
    size = sizes.block

    def write_addresses(lane: Lane) -> Any:
        return lane.xp.arange(size, dtype=lane.xp.uint32) + lane.key

    def write_one_pattern(lane: Lane) -> Any:
        return lane.xp.zeros(size, dtype=lane.xp.uint32) + lane.words(1)

    def write_random(lane: Lane) -> Any:
        return lane.words(size)

    def invert(_: Lane, held: Any) -> Any:
        return ~held

    def invert_again(lane: Lane, held: Any) -> Any:
        return ~held ^ lane.words(1, 1)

    patterns: dict[str, tuple[Callable[[Lane], Any], tuple[Stage, ...]]] = {
        "address": (write_addresses, ()),
        "moving_inversions": (write_one_pattern, (invert, invert_again)),
        "random": (write_random, ()),
        "complement": (write_random, (invert,)),
    }
    for name, (write, stages) in patterns.items():
        yield BatteryTest(f"memory.{name}", write, stages, blocks=sizes.blocks)


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


def list_training_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield `step.train` (several steps, each from the state of the one before) and `step.replay` (one step).

    A wrong number goes through everything after it.
    """
    shape = make_shape(sizes)
    yield BatteryTest("step.train", partial(_train, shape=shape, steps=sizes.steps), spoils_itself=True)
    yield BatteryTest("step.replay", partial(_train, shape=shape, steps=1), spoils_itself=True)


def _train(lane: Lane, shape: GptShape, steps: int) -> Any:
    """Return all weights after `steps` on one batch, in one row."""
    state = make_state(lane, shape)
    batch = make_batch(lane, shape)
    for _ in range(steps):
        _, gradients = find_gradients(lane, shape, state["weights"], batch, stay)
        state = update(lane, state, gradients)
    return lane.xp.concatenate([state["weights"][name].reshape(-1) for name in sorted(state["weights"])])


FAMILIES = (
    list_matrix_tests,
    list_function_tests,
    list_reduction_tests,
    list_integer_tests,
    list_memory_tests,
    list_training_tests,
    list_collective_tests,
)


def list_tests(sizes: BatterySizes) -> list[BatteryTest]:
    """Return all tests in the order in which they run."""
    return [test for list_family in FAMILIES for test in list_family(sizes)]


def choose_tests(tests: Sequence[BatteryTest], patterns: Sequence[str]) -> list[BatteryTest]:
    """Return the tests that a pattern names: whole name, beginning or wildcards. Raises ValueError."""
    for pattern in patterns:
        if not any(_is_named(test.name, pattern) for test in tests):
            families = sorted({test.name.partition(".")[0] for test in tests})
            raise ValueError(f"--tests {pattern}: no test is called so; tests begin with {', '.join(families)}")
    return [test for test in tests if not patterns or any(_is_named(test.name, pattern) for pattern in patterns)]


def _is_named(name: str, pattern: str) -> bool:
    return name == pattern or name.startswith(f"{pattern}.") or fnmatchcase(name, pattern)


def hash_program(sizes: BatterySizes, flags: str) -> str:
    """Return the SHA-256 of what decides about digests beside the device: version, sizes and flags."""
    text = json.dumps([BATTERY_VERSION, asdict(sizes), flags], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
