"""Elementary functions and casts: the complex units of a core fail more often than its tensor cores.

Integer modulo, counting, scatter and gather: the first victims in published cases. All are exact in any order.

Matrix products of every type, in bands of values: some defects show only for very small or very large numbers.

Sums along rows, running sums and sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from assay.node.load.lane import Lane
from assay.node.load.unit_tests import BatterySizes, BatteryTest

CASTS = ("bfloat16", "float16", "float8", "float64")


def _exp(lane: Lane, x: Any) -> Any:
    return lane.xp.exp(x * 20)


def _log(lane: Lane, x: Any) -> Any:
    return lane.xp.log(lane.xp.abs(x) + 1e-6)


def _sin(lane: Lane, x: Any) -> Any:
    return lane.xp.sin(x * 100)


def _tanh(lane: Lane, x: Any) -> Any:
    return lane.xp.tanh(x * 4)


def _rsqrt(lane: Lane, x: Any) -> Any:
    return lane.arithmetic.reverse_root(lane.xp.abs(x) + 1e-6)


def _divide(lane: Lane, x: Any) -> Any:
    return x[::-1] / (lane.xp.abs(x) + 0.5)


FUNCTIONS: dict[str, Callable[[Lane, Any], Any]] = {
    "exp": _exp, "log": _log, "sin": _sin, "tanh": _tanh, "rsqrt": _rsqrt, "divide": _divide,
}  # fmt: skip


def list_function_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
    """Yield `math.FUNCTION.TYPE` and `cast.TYPE`."""
    for name, function in FUNCTIONS.items():
        for dtype in ("float32", "float64"):
            compute = partial(_call, function=function, dtype=dtype, size=sizes.vector)
            yield BatteryTest(f"math.{name}.{dtype}", compute)
    for dtype in CASTS:
        yield BatteryTest(f"cast.{dtype}", partial(_cast, dtype=dtype, size=sizes.vector), needs=(dtype,))
    yield BatteryTest("cast.int32", partial(_cast_whole, size=sizes.vector))


def _call(lane: Lane, function: Callable[[Lane, Any], Any], dtype: str, size: int) -> Any:
    return function(lane, lane.numbers((size,)).astype(dtype)).astype(dtype)


def _cast(lane: Lane, dtype: str, size: int) -> Any:
    xp = lane.xp
    spread = lane.numbers((size,)) * lane.powers((size,), -4, 4, 1)
    there = lane.arithmetic.narrow(spread, dtype)
    return (there * 3 if dtype == "float64" else there).astype(xp.float32)


def _cast_whole(lane: Lane, size: int) -> Any:
    return (lane.numbers((size,)) * 2.0**30).astype(lane.xp.int32)


def list_integer_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
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
    left, right = lane.numbers((outer, inner), 1), lane.numbers((inner, outer), 2)
    xp = lane.xp
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


def list_reduction_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
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
