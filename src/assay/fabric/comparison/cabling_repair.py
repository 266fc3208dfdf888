"""One repair: the discrepancies that have one common cause, and so are one ticket. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from assay.fabric.comparison.discrepancy import CablingDiscrepancy


@dataclass(frozen=True, slots=True)
class CablingRepair:
    """The work of one ticket. `cause` identifies what the members have in common, "" for a single discrepancy."""

    members: tuple[CablingDiscrepancy, ...]
    cause: str = ""
    title: str = ""
    likely_cause: str = ""

    @property
    def first(self) -> CablingDiscrepancy:
        """The discrepancy, or the first of several."""
        return self.members[0]
