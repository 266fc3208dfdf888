"""How each fabric's last discovery compares with its design; compared again only when one of the two changed."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from assay.controller.desk import Desk
from assay.fabric.compare import Comparison
from assay.fabric.scan import judge, subject_name
from assay.model.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Cabling:
    """One comparison, and when the discovery was made (ISO 8601 UTC)."""

    comparison: Comparison
    scanned_at: str


class Cablings:
    """The comparisons of a fleet's fabrics. For any thread."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._kept: dict[str, tuple[float, Cabling]] = {}
        self._lock = Lock()

    def now(self, desk: Desk) -> dict[str, Cabling]:
        """Return each fabric's that nodes are cabled to; one that was never scanned is left out."""
        with self._lock:
            if self._fleet is not desk.fleet:
                self._fleet, self._kept = desk.fleet, {}
            wanted = {str(node.variables.get("fabric") or "") for node in desk.fleet.nodes.values()}
            for name in sorted(wanted & desk.fleet.designs.keys()):
                self._look(desk, name)
            return {name: cabling for name, (_, cabling) in self._kept.items()}

    def _look(self, desk: Desk, name: str) -> None:
        design = desk.fleet.designs[name]
        kept_at = desk.evidence.kept_at(subject_name(design))
        if name in self._kept and self._kept[name][0] == kept_at:
            return
        if evidence := desk.evidence.latest(subject_name(design)):
            cabling = Cabling(judge(desk.fleet, design, evidence), evidence.at.isoformat())
            self._kept[name] = (kept_at, cabling)
