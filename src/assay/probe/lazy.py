"""Readings still to be taken: a tree whose leaves are questions, so that each can have a deadline of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from assay.model.reading import as_reading
from assay.probe.files import Tree

Lazy = Mapping[str, Any]
"""Name → reading, branch, or a callable that takes one look at the machine and returns any of these three."""

USUAL_S = 2.0


class Timed(NamedTuple):
    """A question that may take longer, or less long, than `USUAL_S`."""

    seconds: float
    read: Callable[[], Any]

    def __call__(self) -> Any:
        """Ask it."""
        return self.read()


def settled(what: Any) -> Tree:
    """Return what a lazy tree reads now, all questions asked one after the other in this process."""
    while callable(what):
        what = what()
    if as_reading(what) is None and isinstance(what, Mapping):
        return {name: settled(branch) for name, branch in what.items()}
    found: Tree = what
    return found
