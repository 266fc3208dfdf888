"""All tests of the battery, by name, and what identifies the battery as a program.

Collectives and links on whole numbers held in floats: exact in any order, whatever the algorithm.

Patterns through memory: written by one program, read and inverted by others, in several blocks at a time.

Training steps as units of the battery: a wrong number goes through everything after it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from assay.node.load.arithmetic import list_function_tests, list_integer_tests, list_matrix_tests, list_reduction_tests
from assay.node.load.gpt import GptShape, find_gradients, make_batch, make_state, stay, update
from assay.node.load.lane import Lane
from assay.node.load.unit_tests import BatterySizes, BatteryTest

SUMMANDS = 4096  # below 2^24 / 4096 devices: the sum stays exact


def list_collective_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
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


def list_memory_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
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


def list_training_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
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


FAMILIES = (
    list_matrix_tests,
    list_function_tests,
    list_reduction_tests,
    list_integer_tests,
    list_memory_tests,
    list_training_tests,
    list_collective_tests,
)
BATTERY_VERSION = 2
"""Raise it when a test's mathematics, inputs or digest change: golden digests of an older version are then unknown."""


def list_tests(sizes: BatterySizes) -> list[BatteryTest]:
    """Return all tests in the order in which they run."""
    return [test for list_family in FAMILIES for test in list_family(sizes)]


def choose_tests(tests: Sequence[BatteryTest], patterns: Sequence[str]) -> list[BatteryTest]:
    """Return the tests that a pattern names: whole name, beginning or wildcards. Raises ValueError."""
    for pattern in patterns:
        if not any(_is_named(test.name, pattern) for test in tests):
            families = sorted({test.name.partition(".")[0] for test in tests})
            raise ValueError(f"--tests {pattern}: no test is called so; tests begin with {', '.join(families)}")
    return [test for test in tests if not patterns or any(_is_named(test.name, one) for one in patterns)]


def _is_named(name: str, pattern: str) -> bool:
    return name == pattern or name.startswith(f"{pattern}.") or fnmatchcase(name, pattern)


def hash_program(sizes: BatterySizes, flags: str) -> str:
    """Return the SHA-256 of what decides about digests beside the device: version, sizes and flags."""
    text = json.dumps([BATTERY_VERSION, asdict(sizes), flags], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
