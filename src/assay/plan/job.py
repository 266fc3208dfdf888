"""One piece of work on a fabric, as a technician gets it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

What = Literal["swap", "move", "lay", "take-out", "device-moves", "device-changes", "rate", "length"]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work. `steps` are for hands, in order; `nodes` lose links meanwhile; `place` sorts the round."""

    fabric: str
    what: What
    steps: tuple[str, ...]
    nodes: tuple[str, ...]
    place: tuple[str, int] = ("", 0)


def nodes_of(jobs: Iterable[Job]) -> set[str]:
    """Return the nodes that lose links while the work is done."""
    return {node for job in jobs for node in job.nodes}
