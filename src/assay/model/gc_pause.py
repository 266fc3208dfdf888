"""Holds Python's collector still while very many objects are made that stay: it would look through them each time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_gc() -> Iterator[None]:
    """Make objects without a search for circles among them. Afterwards they count as old, and are rarely looked at."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()  # both together put all that there is into the oldest generation, at no cost
            gc.unfreeze()
            gc.enable()
