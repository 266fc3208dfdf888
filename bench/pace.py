"""How fast this machine is just now, against the one for which the bounds in CPU seconds were set."""

from __future__ import annotations

import time

LOOP = compile("total = 0\nfor number in range(4_000_000):\n    total += number\n", "the loop", "exec")
"""At the level of a module: each turn looks names up in dicts and makes an object, as most of our code does."""
REFERENCE_S = 0.3
"""CPU seconds of the loop on the machine of the bounds (Python 3.11, one virtual core, nothing beside it)."""


def measure_pace() -> float:
    """Return the CPU time of a fixed loop as a multiple of `REFERENCE_S`: 2.0 is half as fast as the reference."""
    start = time.process_time()
    exec(LOOP, {})  # noqa: S102 — our own constant text
    return (time.process_time() - start) / REFERENCE_S
