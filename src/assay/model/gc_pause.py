"""Pauses Python's garbage collector while many long-lived objects are created: it would scan them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_gc() -> Iterator[None]:
    """Create objects without collections. Afterwards they are in the oldest generation, which is scanned rarely."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()  # freeze and unfreeze together move all objects into the oldest generation, at no cost
            gc.unfreeze()
            gc.enable()
