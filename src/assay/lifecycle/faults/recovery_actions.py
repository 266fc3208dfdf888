"""The recovery action that the driver names for a GPU (XID 154) overrides what earlier XIDs of that GPU ask for."""

from __future__ import annotations

from collections.abc import Iterable

from assay.lifecycle.faults.sightings import UNKNOWN_PART, FaultSighting
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import parse_time

XID_CLASSES = "gpu.xid."


def discount_overridden(catalog: FaultCatalog, sightings: Iterable[FaultSighting]) -> list[FaultSighting]:
    """Return the sightings, in their order; XIDs that a later recovery action of their GPU overrides do not count."""
    ordered = list(sightings)
    for place, action in enumerate(ordered):
        rule = catalog.find_recovery_action(action.fault_class)
        if rule is None or action.part == UNKNOWN_PART:
            continue
        for earlier, one in enumerate(ordered[:place]):
            is_xid = one.part == action.part and one.fault_class.startswith(XID_CLASSES)
            if is_xid and 0 <= seconds_between(one.at, action.at) <= rule.overrides_seconds:
                ordered[earlier] = one._replace(counts=False)
    return ordered


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one ISO 8601 time to another."""
    return (parse_time(later) - parse_time(earlier)).total_seconds()
