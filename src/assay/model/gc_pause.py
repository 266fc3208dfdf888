"""Spares Python's garbage collector the scan of many long-lived objects, again and again."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

_KEPT = Event()
COMMAND_GC_THRESHOLD = 50_000  # new objects before a collection; importing what a verb needs makes 300,000


def collect_rarely() -> None:
    """Let a command's process collect rarely, and not once more at its end: that is a quarter of a short command."""
    gc.set_threshold(COMMAND_GC_THRESHOLD, *gc.get_threshold()[1:])
    atexit.register(_skip_last_collection)


def _skip_last_collection() -> None:
    if "duckdb" not in sys.modules:  # it reports objects that are left at the end, on stderr
        gc.freeze()


def keep_objects() -> None:
    """Let no collection scan the objects of now again: they live as long as the process."""
    gc.freeze()
    _KEPT.set()


@contextmanager
def pause_gc() -> Iterator[None]:
    """Create objects without collections. Afterwards they are in the oldest generation, which is scanned rarely."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not _KEPT.is_set():  # else kept objects would be scanned again
                gc.freeze()  # freeze and unfreeze together move all objects into the oldest generation, at no cost
                gc.unfreeze()
            gc.enable()
