"""The battery's arithmetic: matrix products, elementary functions and casts, integer work, sums, and sorting.

Matrices come in bands of values, since some defects show only for very small or very large numbers. The complex units
of a core, which compute functions, fail more often than its tensor cores. Integer modulo, counting, scatter and gather
were the first victims in published cases; all are exact in any order. Values at the limits of each type come too: what
flushes denormals, clamps, or makes NaN a number, changes a digest. All NaN count as one: their bits say nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from assay.node.load.lane import Lane
from assay.node.load.unit_tests import BatterySizes, BatteryTest

CASTS = ("bfloat16", "float16", "float8", "float64")
FUNCTIONS: dict[str, Callable[[Lane, Any], Any]] = {
    "exp": lambda lane, x: lane.xp.exp(x * 20),
    "log": lambda lane, x: lane.xp.log(lane.xp.abs(x) + 1e-6),
    "sin": lambda lane, x: lane.xp.sin(x * 100),
    "tanh": lambda lane, x: lane.xp.tanh(x * 4),
    "rsqrt": lambda lane, x: lane.arithmetic.reverse_root(lane.xp.abs(x) + 1e-6),
    "divide": lambda lane, x: x[::-1] / (lane.xp.abs(x) + 0.5),
}
WIDE = {"ones": 0, "tiny": -66, "huge": 50}  # 2^-66 is 1.4e-20, 2^50 is 1.1e15
BANDS: dict[str, dict[str, int]] = {
    "float64": WIDE,
    "float32": WIDE,
    "tfloat32": WIDE,
    "bfloat16": WIDE,
    "float16": {"ones": 0, "tiny": -8, "huge": 5},
    "float8": {"ones": 0, "tiny": -4, "huge": 6},
    "int8": {"small": 3, "full": 7},
}
"""Exponents of the left matrix by type and band. `mixed` comes beside them: each number has an exponent of its own."""
MIXED = {"float16": 6, "float8": 4}
MIXED_WIDE = 20


FLOAT_LIMITS = {
    "float64": ((2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 2.0**-1074),
    "float32": ((2 - 2.0**-23) * 2.0**127, 2.0**-126, 2.0**-149),
    "tfloat32": ((2 - 2.0**-10) * 2.0**127, 2.0**-126, 2.0**-136),
    "bfloat16": ((2 - 2.0**-7) * 2.0**127, 2.0**-126, 2.0**-133),
    "float16": (65504.0, 2.0**-14, 2.0**-24),
    "float8": (448.0, 2.0**-6, 2.0**-9),
}
"""The largest number of each type, its smallest normal one, and its smallest denormal one."""
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"add": operator.add, "multiply": operator.mul}


def make_limits(lane: Lane, size: int, dtype: str, stream: int = 0) -> Any:
    """Return numbers of which half are at the limits of a type: float64 for that type, else float32."""
    xp, wide = lane.xp, "float64" if dtype == "float64" else "float32"
    largest, normal, denormal = FLOAT_LIMITS[dtype]
    finite = (0.0, largest, 0.75 * largest, normal, denormal, 5 * denormal)
    table = xp.array([math.nan, math.inf, -math.inf, *finite, *(-each for each in finite)], dtype=wide)
    words = lane.words(size, stream)
    chosen = table[(words % xp.uint32(len(table))).astype(xp.int32)]
    return xp.where(words >> 31 == 1, chosen, lane.numbers((size,), stream + 1).astype(wide))


def unite_nan(lane: Lane, array: Any) -> Any:
    """Return the array with one NaN in place of all: which operand's bits it keeps is nobody's promise."""
    return lane.xp.where(lane.xp.isnan(array), array.dtype.type(math.nan), array)


def _combine(lane: Lane, operation: Callable[[Any, Any], Any], dtype: str, size: int) -> Any:
    narrow, wide = lane.arithmetic.narrow, "float64" if dtype == "float64" else "float32"
    left, right = (narrow(make_limits(lane, size, dtype, stream), dtype).astype(wide) for stream in (0, 2))
    return unite_nan(lane, narrow(operation(left, right), dtype).astype(wide))


def _multiply_limits(lane: Lane, dtype: str, edge: int) -> Any:
    """Return a product of matrices, each result one product: nothing is added to what is at the limit."""
    xp, narrow = lane.xp, lane.arithmetic.narrow
    limits = make_limits(lane, edge, dtype)
    left = xp.where(xp.arange(edge)[None, :] == 0, limits[:, None], xp.zeros((), limits.dtype))
    right = lane.numbers((edge, edge), 2).astype(limits.dtype)
    return unite_nan(lane, lane.arithmetic.product(narrow(left, dtype), narrow(right, dtype), dtype))


def list_limit_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield `limits.OPERATION.TYPE` and `gemm.TYPE.limits`, of numbers at the limits of each type."""
    for dtype in FLOAT_LIMITS:
        for name, operation in OPERATIONS.items():
            compute = partial(_combine, operation=operation, dtype=dtype, size=sizes.vector)
            yield BatteryTest(f"limits.{name}.{dtype}", compute, needs=(dtype,))
        edge = sizes.edge_float64 if dtype == "float64" else sizes.edge
        yield BatteryTest(f"gemm.{dtype}.limits", partial(_multiply_limits, dtype=dtype, edge=edge), needs=(dtype,))


def list_matrix_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield `gemm.TYPE.BAND`, and `gemm.TYPE.odd` whose inner edge is odd."""
    for dtype, bands in BANDS.items():
        edge = sizes.edge_float64 if dtype == "float64" else sizes.edge
        names = [*bands, *([] if dtype == "int8" else ["mixed"]), "odd"]
        for band in names:
            inner = sizes.odd if band == "odd" else edge
            outer = min(edge, sizes.odd + 1) if band == "odd" else edge
            compute = partial(_multiply, dtype=dtype, band=band, outer=outer, inner=inner)
            yield BatteryTest(f"gemm.{dtype}.{band}", compute, needs=(dtype,))


def _multiply(lane: Lane, dtype: str, band: str, outer: int, inner: int) -> Any:
    xp = lane.xp
    left = lane.numbers((outer, inner), 1)
    right = lane.numbers((inner, outer), 2)
    if dtype == "int8":
        bits = BANDS[dtype].get(band, 7)
        left, right = (xp.floor(side * xp.float32(2.0**bits)) for side in (left, right))
    elif band == "mixed":
        span = MIXED.get(dtype, MIXED_WIDE)
        left = left * lane.powers((outer, inner), -span, span, 3)
    else:
        left = left * xp.float32(2.0 ** BANDS[dtype].get(band, 0))
    narrow = lane.arithmetic.narrow
    return lane.arithmetic.product(narrow(left, dtype), narrow(right, dtype), dtype)


def list_function_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield `math.FUNCTION.TYPE` and `cast.TYPE`."""
    size = sizes.vector
    for name, function in FUNCTIONS.items():
        for dtype in ("float32", "float64"):
            compute = partial(_call, function=function, dtype=dtype, size=size)
            yield BatteryTest(f"math.{name}.{dtype}", compute)
    for dtype in CASTS:
        yield BatteryTest(f"cast.{dtype}", partial(_cast, dtype=dtype, size=size), needs=(dtype,))
    yield BatteryTest("cast.int32", lambda lane: (lane.numbers((size,)) * 2.0**30).astype(lane.xp.int32))


def _call(lane: Lane, function: Callable[[Lane, Any], Any], dtype: str, size: int) -> Any:
    return unite_nan(lane, function(lane, make_limits(lane, size, dtype)).astype(dtype))


def _cast(lane: Lane, dtype: str, size: int) -> Any:
    xp = lane.xp
    spread = lane.numbers((size,)) * lane.powers((size,), -4, 4, 1)
    there = lane.arithmetic.narrow(spread, dtype)
    return (there * 3 if dtype == "float64" else there).astype(xp.float32)


def list_integer_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield modulo, bincount, scatter and gather."""
    size = sizes.vector

    def multiply_modulo(lane: Lane) -> Any:
        xp = lane.xp
        left = lane.words(size).astype(xp.int64) * lane.words(size, 1).astype(xp.int64)
        return xp.abs(left) % (lane.words(size, 2).astype(xp.int64) | 1)

    def choose_bins(lane: Lane) -> Any:
        return (lane.words(size) % lane.xp.uint32(sizes.bins)).astype(lane.xp.int32)

    def scatter_add(lane: Lane) -> Any:
        summands = lane.words(size, 1).view(lane.xp.int32)
        return lane.arithmetic.scatter_add(sizes.bins, choose_bins(lane), summands)

    def scatter_set(lane: Lane) -> Any:
        xp = lane.xp
        factor = (lane.words(1, 3) | 1)[0]  # multiplying by an odd number permutes the places modulo a power of two
        places = ((xp.arange(size, dtype=xp.uint32) * factor) % xp.uint32(size)).astype(xp.int32)
        return lane.arithmetic.scatter_set(size, places, lane.payload(size))

    def gather(lane: Lane) -> Any:
        places = (lane.words(size, 1) % lane.xp.uint32(size)).astype(lane.xp.int32)
        return lane.payload(size)[places]

    yield BatteryTest("modulo.uint32", lambda lane: lane.words(size) % ((lane.words(size, 1) >> 12) | 1))
    yield BatteryTest("modulo.int64", multiply_modulo)
    yield BatteryTest("bincount.int32", lambda lane: lane.arithmetic.count(choose_bins(lane), sizes.bins))
    yield BatteryTest("scatter.add.int32", scatter_add)
    yield BatteryTest("scatter.set.float32", scatter_set)
    yield BatteryTest("gather.float32", gather)


def list_reduction_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield softmax, layer norm, running sums and sorting."""
    shape = (sizes.rows, sizes.columns)
    size = sizes.vector

    def sum_rows(lane: Lane) -> Any:
        return lane.xp.cumsum(lane.numbers(shape), axis=1, dtype=lane.xp.float32)

    def sum_words(lane: Lane) -> Any:
        return lane.xp.cumsum(lane.words(size).astype(lane.xp.int32), dtype=lane.xp.int32)

    yield BatteryTest("softmax.float32", lambda lane: softmax(lane.xp, lane.numbers(shape) * 8))
    yield BatteryTest("layer_norm.float32", lambda lane: normalize(lane, lane.numbers(shape))[0])
    yield BatteryTest("cumsum.float32", sum_rows)
    yield BatteryTest("cumsum.int32", sum_words)
    yield BatteryTest("sort.float32", lambda lane: lane.xp.sort(lane.numbers((size,))))
    yield BatteryTest("sort.int32", lambda lane: lane.xp.sort(lane.words(size).view(lane.xp.int32)))


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
