"""Keeps the number of different open faults of one node bounded. What is above it becomes one fault of the node.

So a node's token cannot fill the ledger with invented parts, and what is not kept one by one is counted and told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.model.faults.fault_record import FaultRecord
from assay.model.faults.sightings import FaultSighting
from assay.model.node import Node
from assay.model.specs.fault_catalog import FaultCatalog, FaultSeverity
from assay.model.timestamps import format_time

TELEMETRY_FLOODED = "telemetry.flooded"
FaultKey = tuple[str, str]
"""The class and the subject of a fault."""


def group_sightings(
    catalog: FaultCatalog,
    node: Node,
    known: Iterable[FaultRecord],
    sightings: Iterable[FaultSighting],
    most: int,
) -> dict[FaultKey, list[FaultSighting]]:
    """Return the sightings by class and subject, with at most `most` open faults of each severity.

    An open fault always gets its sightings, and the other places go to the first ones seen. Sightings that find no
    place are of the fault `telemetry.flooded`. Each severity has places of its own: a flood of harmless faults does not
    hide a catastrophic one.
    """
    groups: dict[FaultKey, list[FaultSighting]] = {}
    for sighting in sightings:
        subject = f"{node.subject}/{sighting.part}".rstrip("/")
        groups.setdefault((sighting.fault_class, subject), []).append(sighting)
    open_faults = {(fault.fault_class, fault.subject) for fault in known if fault.is_open}
    if len(open_faults) + len(groups) > most:
        _fold_excess(catalog, node, open_faults, groups, most)
    return groups


def make_flood_sighting(detail: str, at: str) -> FaultSighting:
    """Return the sighting that a node delivers more than it may; `at` is ISO 8601 UTC."""
    return FaultSighting(TELEMETRY_FLOODED, "", format_time(at), detail, "intake", format_time(at))


def _fold_excess(
    catalog: FaultCatalog,
    node: Node,
    open_faults: set[FaultKey],
    groups: dict[FaultKey, list[FaultSighting]],
    most: int,
) -> None:
    room = _count_room(catalog, open_faults, most)
    excess: list[FaultSighting] = []
    new = [key for key in groups if key not in open_faults and key[0] != TELEMETRY_FLOODED]
    for key in new:
        severity = catalog.find_treatment(key[0]).severity
        left = room.get(severity, most)
        room[severity] = left - 1
        if left < 1:
            excess += _describe_excess(groups.pop(key), severity, most)
    if excess:
        groups.setdefault((TELEMETRY_FLOODED, node.subject), []).extend(excess)


def _count_room(catalog: FaultCatalog, open_faults: set[FaultKey], most: int) -> dict[FaultSeverity, int]:
    room: dict[FaultSeverity, int] = {}
    for name, _ in open_faults:
        severity = catalog.find_treatment(name).severity
        room[severity] = room.get(severity, most) - 1
    return room


def _describe_excess(group: Sequence[FaultSighting], severity: FaultSeverity, most: int) -> list[FaultSighting]:
    text = f"more than {most} {severity} faults are open, and the rest is only counted here"
    return [
        one._replace(fault_class=TELEMETRY_FLOODED, part="", detail=f"{text}; the first was {one.detail}", counts=True)
        for one in group
    ]
