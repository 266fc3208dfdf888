"""Keeps how the last discovery of each fabric compares with its design, until one of the two changes."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from assay.controller.context import ControllerContext
from assay.fabric.comparison.compare import FabricComparison
from assay.fabric.scan import format_fabric_subject, judge_scan
from assay.model.fleet import Fleet


@dataclass(frozen=True, slots=True)
class ScannedFabricComparison:
    """One comparison, and when its discovery was made (ISO 8601, UTC)."""

    comparison: FabricComparison
    scanned_at: str


class FabricComparisonCache:
    """The comparisons of a fleet's fabrics. Safe for threads."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._cached: dict[str, tuple[float, ScannedFabricComparison]] = {}
        self._lock = Lock()

    def get_all(self, context: ControllerContext) -> dict[str, ScannedFabricComparison]:
        """Return the comparison of each fabric that has nodes. A fabric that was never scanned is left out."""
        with self._lock:
            if self._fleet is not context.fleet:
                self._fleet, self._cached = context.fleet, {}
            fabrics = {node.settings.fabric or "" for node in context.fleet.nodes.values()}
            for name in sorted(fabrics & context.fleet.designs.keys()):
                self._refresh(context, name)
            return {name: comparison for name, (_, comparison) in self._cached.items()}

    def _refresh(self, context: ControllerContext, name: str) -> None:
        design = context.fleet.designs[name]
        stored_at = context.evidence.stored_at(format_fabric_subject(design))
        if name in self._cached and self._cached[name][0] == stored_at:
            return
        if evidence := context.evidence.latest(format_fabric_subject(design)):
            comparison = judge_scan(context.fleet, design, evidence)
            self._cached[name] = (stored_at, ScannedFabricComparison(comparison, evidence.at.isoformat()))
