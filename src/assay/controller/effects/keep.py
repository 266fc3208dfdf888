"""Whether what takes time to start is kept running for the next pass, as a controller that goes on wants it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_kept: list[ExitStack] = []


@contextmanager
def keeping() -> Iterator[None]:
    """While this lasts, what enters `kept()` stays; it is left in the end."""
    with ExitStack() as stack:
        _kept.append(stack)
        try:
            yield
        finally:
            _kept.remove(stack)


def kept() -> ExitStack | None:
    """Return where to enter what shall stay, None where nobody wants that."""
    return _kept[-1] if _kept else None
