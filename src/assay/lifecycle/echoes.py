"""Which faults are only the echo of another: a XID 45 after the XID 48 that caused it, peers' XIDs after a reset."""

from __future__ import annotations

from typing import NamedTuple

from assay.model.faults import FaultCatalog


class Cause(NamedTuple):
    """The fault that an echo belongs to: its class and the part on which it was."""

    name: str
    part: str


class Echoes:
    """When faults that have echoes were last seen. Memory: one time for each such class and part.

    Times are seconds on any one clock; sightings are to come in their order. An echo is nobody's cause.
    """

    def __init__(self, catalog: FaultCatalog) -> None:
        self._catalog = catalog
        self._last: dict[str, dict[str, float]] = {}

    def concern(self, name: str) -> bool:
        """Whether a fault of that name may have echoes, or be one."""
        fault = self._catalog.class_of(name)
        return name in self._catalog.causes or (fault is not None and fault.follows is not None)

    def hear(self, name: str, part: str, at: float) -> None:
        """Remember a fault that was seen."""
        if name in self._catalog.causes:
            parts = self._last.setdefault(name, {})
            parts[part] = max(at, parts.get(part, at))

    def cause(self, name: str, part: str, at: float) -> Cause | None:
        """Return what a fault is the echo of: the latest before it, None where it stands for itself."""
        fault = self._catalog.class_of(name)
        follows = fault.follows if fault else None
        if follows is None or not self._last:
            return None
        earliest, found = at - follows.within_seconds, None
        for other in follows.classes:
            for place, when in self._last.get(other, {}).items():
                if earliest <= when <= at and (follows.where == "node" or place == part):
                    earliest, found = when, Cause(other, place)
        return found
