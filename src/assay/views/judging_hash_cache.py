"""What a fleet's outcomes must have been judged by, kept for the fleet that was asked for last.

To find it, all suites are read, which takes a tenth of a second; and a page explains many nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.fleet.spec_values_read_by_checks import JudgingHashes
    from assay.model.fleet import Fleet


class JudgingHashCache:
    """Keeps the hashes of one fleet. A fleet that was read again is another one. Safe for threads."""

    def __init__(self) -> None:
        self._kept: tuple[Fleet, JudgingHashes] | None = None

    def find(self, fleet: Fleet) -> JudgingHashes:
        """Return the hashes of a fleet."""
        from assay.fabric.topology.node_cables import digest_node_cables
        from assay.fleet.spec_values_read_by_checks import JudgingHashes

        kept = self._kept
        if kept is None or kept[0] is not fleet:
            self._kept = kept = fleet, JudgingHashes(fleet, digest_node_cables)
        return kept[1]


JUDGING_HASHES = JudgingHashCache()
