"""Matrix products of every type, in bands of values: some defects show only for very small or very large numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from assay.node.load.battery_test import BatteryTest
from assay.node.load.lane import Lane
from assay.node.load.sizes import BatterySizes

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


def list_tests(sizes: BatterySizes) -> Iterator[BatteryTest]:
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
