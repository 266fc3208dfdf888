"""The recovery action that the driver names for a GPU (XID 154) overrides what earlier XIDs of that GPU ask for."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.faults.sightings import UNKNOWN_PART, FaultSighting
from assay.model.specs.fault_catalog import XID_NAMES, FaultCatalog
from assay.model.timestamps import parse_time


def discount_overridden(catalog: FaultCatalog, sightings: Iterable[FaultSighting]) -> list[FaultSighting]:
    """Return the sightings, in their order; XIDs that a later recovery action of their GPU overrides do not count."""
    ordered, next_action = list(sightings), dict[str, FaultSighting]()
    for place in range(len(ordered) - 1, -1, -1):
        one = ordered[place]
        later = next_action.get(one.part)
        if later and one.fault_class.startswith(XID_NAMES) and _overrides(catalog, later, one):
            ordered[place] = one._replace(counts=False)
        if one.part != UNKNOWN_PART and catalog.find_recovery_action(one.fault_class):
            next_action[one.part] = one
    return ordered


def _overrides(catalog: FaultCatalog, later: FaultSighting, earlier: FaultSighting) -> bool:
    rule = catalog.find_recovery_action(later.fault_class)
    return rule is not None and 0 <= seconds_between(earlier.at, later.at) <= rule.overrides_seconds


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one ISO 8601 time to another."""
    return (parse_time(later) - parse_time(earlier)).total_seconds()
