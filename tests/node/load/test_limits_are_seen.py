"""The battery's data hold what real faults change: NaN, infinities, denormals, -0, and numbers at the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from assay.node.load.catalog import list_tests
from assay.node.load.digests import make_key, sum_digest
from assay.node.load.lane import Lane
from assay.node.load.numpy_engine import LACKS, NumpyArithmetic
from assay.node.load.planted_faults import HEALTHY
from assay.node.load.unit_tests import SMALL

FLOATS = ("limits.", "math.", "copy.source", "gather.", "scatter.set", "memory.limits")


def flush(array: Any) -> Any:
    return np.where(np.abs(array) < np.finfo(array.dtype).tiny, array.dtype.type(0), array)


CORRUPTIONS: dict[str, Callable[[Any], Any]] = {
    "NaN becomes 0": lambda x: np.where(np.isnan(x), x.dtype.type(0), x),
    "infinities are clamped": lambda x: np.where(np.isinf(x), np.copysign(np.finfo(x.dtype).max, x), x),
    "denormals are flushed": flush,
    "-0 becomes 0": lambda x: np.where(x == 0, x.dtype.type(0), x),
    "large numbers are clamped": lambda x: np.where(np.abs(x) > 1e17, np.copysign(x.dtype.type(1e17), x), x),
}


def compute(name: str) -> Any:
    (test,) = [test for test in list_tests(SMALL) if test.name == name]
    key = np.array([make_key(test.keyed_as or test.name, 3)], np.uint32)
    with np.errstate(all="ignore"):
        return test.compute(Lane(NumpyArithmetic(), key, np.array(HEALTHY, np.uint32)))


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    able = [test for test in list_tests(SMALL) if not {"collectives", *LACKS} & set(test.needs)]
    chosen = [test.name for test in able if test.name.startswith(FLOATS) or test.name.endswith(".limits")]
    made = {name: compute(name) for name in chosen}
    return {name: array if array.dtype.kind == "f" else array.view(np.float32) for name, array in made.items()}


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_each_corruption_at_a_limit_changes_digests(kind: str, results: dict[str, Any]) -> None:
    with np.errstate(all="ignore"):
        seen = {
            name
            for name, array in results.items()
            if sum_digest(np, np.ascontiguousarray(CORRUPTIONS[kind](array))) != sum_digest(np, array)
        }
    moved = {"copy.source", "gather.float32", "scatter.set.float32", "memory.limits"}
    assert moved <= seen
    assert len(seen) >= 10


@pytest.mark.parametrize("dtype", ["float64", "float32", "tfloat32", "bfloat16", "float16"])
def test_results_of_each_type_hold_nan_infinities_denormals_and_both_zeros(dtype: str) -> None:
    for name in (f"limits.add.{dtype}", f"limits.multiply.{dtype}"):
        array = compute(name)
        assert np.isnan(array).any()
        assert np.isposinf(array).any()
        assert np.isneginf(array).any()
        zeros = array[array == 0]
        assert np.signbit(zeros).any()
        assert not np.signbit(zeros).all()
    smallest = {"bfloat16": 2.0**-126, "tfloat32": 2.0**-126, "float16": 2.0**-14}.get(
        dtype, np.finfo(array.dtype).tiny
    )
    small = np.abs(compute(f"limits.add.{dtype}"))
    assert ((small > 0) & (small < smallest)).any()


def test_a_product_gives_the_same_digest_each_time_also_at_the_limits() -> None:
    for dtype in ("float64", "float32", "bfloat16", "float16"):
        first, second = compute(f"gemm.{dtype}.limits"), compute(f"gemm.{dtype}.limits")
        assert sum_digest(np, first) == sum_digest(np, second)
        assert np.isnan(first).any()
        assert np.isinf(first).any()
