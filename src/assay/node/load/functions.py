"""Elementary functions and casts: the complex units of a core fail more often than its tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.lane import Lane
from assay.node.load.sizes import BatterySizes

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


def list_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
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
