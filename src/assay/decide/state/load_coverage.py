"""The coverage of each GPU: which parts of a load ran on this serial number, how often, when, and how far they came.

Coverage follows the serial number: a GPU that moves to another node takes it along, and a new GPU has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.ledger_entry import LedgerEntry

PART_RESULTS = ("done", "cut", "lacking")
"""How a part of a visit ended: by itself, by a customer's job, or not at all, because the node lacks something."""


@dataclass(slots=True)
class PartCoverage:
    """One part on one GPU. Times are ISO 8601 UTC, "" for never.

    `turn_at`: the newest visit in which it had its turn. `covered_at`: the newest visit in which it ran to its end, or,
    where it counts in units, computed at least one. `visits`, `cut` and `lacking` count visits by how the part ended.
    `units`: how many units it computed in all; `tests`: by test. `last_unit`: the unit at which it stands.
    """

    turn_at: str = ""
    covered_at: str = ""
    visits: int = 0
    cut: int = 0
    lacking: int = 0
    units: int = 0
    tests: dict[str, int] = field(default_factory=dict)
    last_unit: str = ""

    @property
    def turn_was_used(self) -> bool:
        """Whether its newest turn covered it."""
        return bool(self.turn_at) and self.covered_at == self.turn_at


@dataclass(slots=True)
class GpuCoverage:
    """One GPU by its serial number; `node` is where it was seen last. `parts` is the coverage by part."""

    serial: str
    node: str = ""
    parts: dict[str, PartCoverage] = field(default_factory=dict)

    def find(self, part: str) -> PartCoverage:
        """Return the coverage of a part; that of a part that never ran is empty."""
        return self.parts.get(part) or PartCoverage()


NO_SERIAL = "unknown serials of "
"""Begins the name under which a node's GPUs are covered if nobody read their serial numbers."""


def name_gpus(node: str, serials: Iterable[str]) -> list[str]:
    """Return the names under which a node's GPUs are covered."""
    return sorted({serial for serial in serials if serial}) or [f"{NO_SERIAL}{node}"]


def collect_coverage(
    entries: Iterable[LedgerEntry], known: dict[str, GpuCoverage] | None = None
) -> dict[str, GpuCoverage]:
    """Return the coverage by serial number from the entries of visits, oldest first. Others are left out.

    `known` is the coverage of earlier entries, to which these are added.
    """
    found = {} if known is None else known
    for entry in entries:
        if entry.kind != NodeLoadedEntry.kind:
            continue
        visit = NodeLoadedEntry.read(entry)
        for serial in name_gpus(entry.node, visit.gpus):
            gpu = found.setdefault(serial, GpuCoverage(serial))
            gpu.node = entry.node
            for part, told in visit.parts.items():
                _add_part(gpu.parts.setdefault(part, PartCoverage()), told, visit.slot)
    return found


def _add_part(known: PartCoverage, told: Mapping[str, Any], at: str) -> None:
    ended, units = str(told.get("ended", "")), int(told.get("units", 0))
    known.turn_at = max(known.turn_at, at)
    known.units += units
    for test, count in dict(told.get("tests") or {}).items():
        known.tests[test] = known.tests.get(test, 0) + int(count)
    known.last_unit = str(told.get("last_unit") or known.last_unit)
    if ended == "done" or units:
        known.covered_at = max(known.covered_at, at)
    known.visits += ended == "done"
    known.cut += ended == "cut"
    known.lacking += ended == "lacking"
