"""Measures on one device: products by type, what a digest costs, and memory patterns. Prints one JSON object.

`python -m tools.gpu_check.speeds EDGE BLOCK` with XLA_FLAGS as they are to be measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from assay.node.load.digests import sum_digest
from assay.node.load.jax_engine import JaxArithmetic

REPEATS = 10
TYPES = ("bfloat16", "float16", "float8", "tfloat32", "float32", "float64", "int8")
SHARE_OF_MEMORY = 0.9


def main(edge: int, block: int) -> None:
    """Print what was measured; a question that cannot be answered has its reason."""
    import jax

    jax.config.update("jax_enable_x64", True)
    device = jax.devices()[0]
    arithmetic = JaxArithmetic(1, has_tfloat32=device.platform != "cpu")
    asked: dict[str, Callable[[], Any]] = {
        f"tflops.{dtype}": lambda dtype=dtype: _measure_product(jax, arithmetic, dtype, edge)  # type: ignore[misc]
        for dtype in TYPES
    }
    asked["digest_percent_of_float32_product"] = lambda: _measure_digest(jax, arithmetic, edge)
    asked["memory"] = lambda: _measure_memory(jax, device, block)
    found = {name: _answer(question) for name, question in asked.items()}
    sys.stdout.write(json.dumps({"device": str(device.device_kind), "platform": device.platform, **found}) + "\n")


def _answer(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}


def _time(jax: Any, function: Any, *arguments: Any) -> float:
    """Return the seconds of one call, the fastest of some after the first, which compiles."""
    jax.block_until_ready(function(*arguments))
    best = float("inf")
    for _ in range(REPEATS):
        begun = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        best = min(best, time.perf_counter() - begun)
    return best


def _make_matrices(jax: Any, arithmetic: JaxArithmetic, dtype: str, edge: int) -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(1), 2)
    scale = 100.0 if dtype == "int8" else 1.0
    left, right = (jax.random.uniform(key, (edge, edge), arithmetic.xp.float32, -scale, scale) for key in keys)
    return arithmetic.narrow(left, dtype), arithmetic.narrow(right, dtype)


def _measure_product(jax: Any, arithmetic: JaxArithmetic, dtype: str, edge: int) -> float:
    left, right = _make_matrices(jax, arithmetic, dtype, edge)
    seconds = _time(jax, jax.jit(lambda a, b: arithmetic.product(a, b, dtype)), left, right)
    return round(2 * edge**3 / seconds / 1e12, 2)


def _measure_digest(jax: Any, arithmetic: JaxArithmetic, edge: int) -> float:
    left, right = _make_matrices(jax, arithmetic, "float32", edge)
    plain = _time(jax, jax.jit(lambda a, b: arithmetic.product(a, b, "float32")), left, right)

    def digested(a: Any, b: Any) -> Any:
        made = arithmetic.product(a, b, "float32")
        return made, sum_digest(arithmetic.xp, made)

    return round(100 * (_time(jax, jax.jit(digested), left, right) / plain - 1), 1)


def _measure_memory(jax: Any, device: Any, block: int) -> dict[str, Any]:
    """Return the rates of writing and reading a block (uint32 words), and how much can be held in blocks."""
    xp = jax.numpy
    write = jax.jit(lambda key: xp.arange(block, dtype=xp.uint32) ^ key)
    read = jax.jit(lambda array: sum_digest(xp, array))
    key = xp.uint32(5)
    rates = {
        "write_gb_s": round(4 * block / _time(jax, write, key) / 1e9, 1),
        "read_gb_s": round(4 * block / _time(jax, read, write(key)) / 1e9, 1),
    }
    limit = (device.memory_stats() or {}).get("bytes_limit", 0)
    blocks = int(limit * SHARE_OF_MEMORY) // (4 * block)
    begun = time.perf_counter()
    held = [write(xp.uint32(number)) for number in range(blocks)]
    digests = [read(array) for array in held]
    jax.block_until_ready(digests)
    return {**rates, "held_gb": round(4 * block * len(held) / 1e9, 1), "pass_s": round(time.perf_counter() - begun, 2)}


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
