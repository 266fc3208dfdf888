"""All tests of the battery, by name, and what identifies the battery as a program."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase

from assay.node.load.battery_test import BatteryTest
from assay.node.load.collective_sums import list_tests as list_collective_tests
from assay.node.load.functions import list_tests as list_function_tests
from assay.node.load.integer_work import list_tests as list_integer_tests
from assay.node.load.matrix_products import list_tests as list_matrix_tests
from assay.node.load.memory_patterns import list_tests as list_memory_tests
from assay.node.load.reductions import list_tests as list_reduction_tests
from assay.node.load.sizes import BatterySizes
from assay.node.load.training_step import list_tests as list_training_tests

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
