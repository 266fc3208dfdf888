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

from assay.node.load.arithmetic import (
    list_function_tests,
    list_integer_tests,
    list_limit_tests,
    list_matrix_tests,
    list_reduction_tests,
)
from assay.node.load.gpt import GptShape, find_gradients, make_batch, make_state, stay, update
from assay.node.load.lane import Lane
from assay.node.load.transfers import list_transfer_tests
from assay.node.load.unit_tests import BatterySizes, BatteryTest, Stage

HEADS = 2
DEVICES = 8
BATTERY_VERSION = 3
"""Raise it when a test's mathematics, inputs or digest change: golden digests of an older version are then unknown."""


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

    def write_limits(lane: Lane) -> Any:
        return lane.payload(size).view(lane.xp.uint32)

    patterns: dict[str, tuple[Callable[[Lane], Any], tuple[Stage, ...]]] = {
        "address": (write_addresses, ()),
        "moving_inversions": (write_one_pattern, (invert, invert_again)),
        "random": (write_random, ()),
        "limits": (write_limits, ()),
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
    list_limit_tests,
    list_function_tests,
    list_reduction_tests,
    list_integer_tests,
    list_memory_tests,
    list_training_tests,
)


def list_tests(sizes: BatterySizes, devices: int = DEVICES) -> list[BatteryTest]:
    """Return all tests of so many devices, in the order in which they run."""
    return [*(test for list_family in FAMILIES for test in list_family(sizes)), *list_transfer_tests(sizes, devices)]


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
