"""What a fleet's outcomes must have been judged by, kept for the fleet that was asked for last.

To find it, all suites are read, which takes a tenth of a second; and a page explains many nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from assay.declare.spec_values_read_by_checks import JudgingHashes
    from assay.model.fleet import Fleet

Kept = TypeVar("Kept")


class LastFleetCache(Generic[Kept]):
    """Keeps what `make` gives for one fleet. A fleet that was read again is another one. Safe for threads."""

    def __init__(self, make: Callable[[Fleet], Kept]) -> None:
        self._make = make
        self._kept: tuple[Fleet, Kept] | None = None

    def find(self, fleet: Fleet) -> Kept:
        """Return what belongs to a fleet."""
        kept = self._kept
        if kept is None or kept[0] is not fleet:
            self._kept = kept = fleet, self._make(fleet)
        return kept[1]


def read_judging_hashes(fleet: Fleet) -> JudgingHashes:
    """Return the hashes of a fleet, with those of its cables."""
    from assay.declare.spec_values_read_by_checks import JudgingHashes
    from assay.fabric.design.node_cables import digest_node_cables

    return JudgingHashes(fleet, digest_node_cables)


JUDGING_HASHES = LastFleetCache(read_judging_hashes)
