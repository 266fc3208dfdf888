"""Detects faults from sightings: one for each class and part. A fault gets its full severity at its threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.decide.faults.flooding import group_sightings
from assay.decide.faults.later_primaries import LaterPrimaries
from assay.decide.faults.recovery_actions import discount_overridden
from assay.decide.moves.evidence_validity import counts_in_stay
from assay.decide.state.node_state import NodeState
from assay.model.evidence import EvidenceDocument
from assay.model.faults.bmc_event_faults import drop_told_by_host, find_sel_sightings
from assay.model.faults.bmc_part_names import map_bmc_gpus, name_own_parts
from assay.model.faults.counting_and_correlation import FaultCorrelator, FaultCounter
from assay.model.faults.fault_record import NUMBERED_SOURCES, FaultRecord, list_boots
from assay.model.faults.sightings import (
    FaultSighting,
    find_alert_sightings,
    find_boot_time,
    find_check_sightings,
    find_kernel_sightings,
    map_parts_by_pci,
)
from assay.model.ledger_entry import derive_id
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fault_catalog import FaultBlame, FaultCatalog, FaultSeverity, Remedy
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.timestamps import format_time, parse_time


@dataclass(frozen=True, slots=True)
class FaultObservation:
    """A new fault, or an open one that was seen again. Times are ISO 8601 UTC.

    `marks` says how far each source has been read, see `FaultSighting`; `times` are the sightings that count.
    """

    id: str
    node: str
    fault_class: str
    subject: str
    severity: FaultSeverity
    blame: FaultBlame
    remedy: Remedy
    count: int
    first_seen: str
    last_seen: str
    detail: str
    marks: dict[str, str]
    times: tuple[str, ...]


def detect_faults(
    catalog: FaultCatalog,
    policy: LifecyclePolicy,
    node: Node,
    spec: NodeSpec,
    node_state: NodeState,
    evidence: EvidenceDocument | None = None,
    outcomes: Iterable[RecordedOutcome] = (),
    last_gpus: Mapping[str, str] | None = None,
) -> list[FaultObservation]:
    """Return the faults that this evidence and these outcomes add to the known faults of the node.

    Outcomes count in states that watch their phase; in other states, the state's own requirements judge them. The same
    evidence adds nothing a second time. Neither does an event log that is delivered whole each time. `last_gpus` says
    in which GPU of the node each serial number was seen last.
    """
    watched = set(policy.states[node_state.state].watch)
    counting = [
        recorded
        for recorded in outcomes
        if watched & set(recorded.outcome.phases) and counts_in_stay(policy, node_state, recorded)
    ]
    sightings = list(find_check_sightings(catalog, counting))
    if evidence is not None:
        parts = map_parts_by_pci(spec)
        kernel = list(find_kernel_sightings(catalog, evidence, parts, spec.nvme.count))
        sightings += discount_overridden(catalog, drop_secondary_sightings(catalog, node, node_state, kernel))
        gpus = map_bmc_gpus(evidence, parts, last_gpus)
        named = name_own_parts(find_sel_sightings(catalog, evidence), gpus, node_state.faults)
        by_bmc = _drop_before_boot(named, evidence, node_state)
        sightings += drop_told_by_host(by_bmc, kernel, node_state.faults, parts.values())
        sightings += find_alert_sightings(evidence, parts)
    return count_sightings(catalog, node, node_state, sightings, policy.intake.node.open_faults)


def count_sightings(
    catalog: FaultCatalog, node: Node, node_state: NodeState, sightings: Iterable[FaultSighting], most: int
) -> list[FaultObservation]:
    """Return the faults that these sightings add to the known ones of the node, one for each class and part."""
    groups = group_sightings(catalog, node, node_state.faults, sightings, most)
    known: dict[tuple[str, str], list[FaultRecord]] = {key: [] for key in groups}
    for fault in node_state.faults:
        if (key := (fault.fault_class, fault.subject)) in known:
            known[key].append(fault)
    faults = [
        _count_group(catalog, node, node_state, key, known[key], some)
        for key, group in sorted(groups.items())
        for some in _split_by_repair(node_state, group)
    ]
    return [fault for fault in faults if fault]


def _split_by_repair(node_state: NodeState, group: list[FaultSighting]) -> list[list[FaultSighting]]:
    """Return the sightings of boots that a restart ended, which came late, and all others: two faults."""
    old = [sighting for sighting in group if _is_of_ended_boot(node_state, sighting)]
    return [old, [sighting for sighting in group if sighting not in old]] if old else [group]


def _is_of_ended_boot(node_state: NodeState, sighting: FaultSighting) -> bool:
    boots = list_boots({sighting.source: sighting.mark})
    return bool(boots) and any(boots <= repair.earlier_boots for repair in node_state.repairs)


def drop_secondary_sightings(
    catalog: FaultCatalog, node: Node, node_state: NodeState, sightings: Iterable[FaultSighting]
) -> Iterator[FaultSighting]:
    """Yield the sightings without those that follow from another fault, and those right after a boot or a repair."""
    ordered = sorted(sightings, key=lambda sighting: sighting.at)
    if not ordered:
        return
    correlator = _load_correlator(catalog, node, node_state, ordered[0].at)
    later = LaterPrimaries(catalog, ordered)
    for sighting in ordered:
        if correlator.is_relevant(sighting.fault_class):
            at = parse_time(sighting.at).timestamp()
            if correlator.find_primary(sighting.fault_class, sighting.part, at) or later.has_one(sighting, at):
                continue
            correlator.record(sighting.fault_class, sighting.part, at)
        if not _is_settling(catalog, node_state, sighting):
            yield sighting


def _load_correlator(catalog: FaultCatalog, node: Node, node_state: NodeState, at: str) -> FaultCorrelator:
    """Return a correlator with the known faults from which others may still follow at that time."""
    correlator = FaultCorrelator(catalog)
    since = format_time(parse_time(at) - timedelta(seconds=catalog.longest_follow_seconds))
    for fault in node_state.faults:
        if fault.last_seen >= since and fault.fault_class in catalog.primary_faults:
            part = fault.subject[len(node.subject) + 1 :]
            correlator.record(fault.fault_class, part, parse_time(fault.last_seen).timestamp())
    return correlator


def _is_settling(catalog: FaultCatalog, node_state: NodeState, sighting: FaultSighting) -> bool:
    """Whether a fault comes so soon after a boot or a repair that this explains it."""
    rule = catalog.find_class(sighting.fault_class)
    if rule is None or not rule.settle_seconds:
        return False
    if sighting.uptime_s is not None and sighting.uptime_s < rule.settle_seconds:
        return True
    since = parse_time(sighting.at) - parse_time(node_state.repaired_at)
    return timedelta() <= since < timedelta(seconds=rule.settle_seconds)


def _drop_before_boot(
    sightings: Iterable[FaultSighting], evidence: EvidenceDocument, node_state: NodeState
) -> list[FaultSighting]:
    """Return the sightings since this boot, or since the enrolment if that is earlier: a BMC keeps old events."""
    start = min(find_boot_time(evidence) or evidence.at, parse_time(node_state.enrolled_at))
    return [sighting for sighting in sightings if parse_time(sighting.at) >= start]


def _count_group(
    catalog: FaultCatalog,
    node: Node,
    node_state: NodeState,
    key: tuple[str, str],
    known: list[FaultRecord],
    group: list[FaultSighting],
) -> FaultObservation | None:
    """Return the fault with the new sightings of one class and subject, None if none of them is new."""
    group = _drop_known_sightings(group, known, node_state)
    if not group:
        return None
    group.sort(key=_order_key)
    is_old = _is_of_ended_boot(node_state, group[0])
    same = next((fault for fault in reversed(known) if _is_same_fault(fault, node_state, is_old=is_old)), None)
    fault = _continue_fault(node, same) if same else _start_fault(catalog, node, *key, group[0])
    rule = catalog.find_class(fault.fault_class)
    counter = FaultCounter.for_class(rule, [parse_time(at).timestamp() for at in fault.times], fault.count)
    marks = dict(fault.marks)
    for sighting in group:
        counter.add(parse_time(sighting.at).timestamp(), sighting.counts)
        marks[sighting.source] = sighting.mark
    reached = counter.is_threshold_reached or "check" in marks  # a check has a threshold of its own
    return replace(
        fault,
        severity=catalog.find_treatment(fault.fault_class).severity if reached else "informational",
        count=counter.count,
        last_seen=max(fault.last_seen, group[-1].at),
        marks=marks,
        times=tuple(format_time(datetime.fromtimestamp(at, UTC)) for at in counter.recent),
    )


def _order_key(sighting: FaultSighting) -> tuple[str, int, str]:
    """Return a key that sorts sightings by time; sightings of one moment by number, if their source has numbers."""
    number = int(sighting.mark.rpartition(":")[2]) if sighting.source in NUMBERED_SOURCES else 0
    return (sighting.at, number, sighting.mark)


def _drop_known_sightings(
    group: list[FaultSighting], known: list[FaultRecord], node_state: NodeState
) -> list[FaultSighting]:
    """Return the sightings that no earlier reading of their source has shown.

    A failing check is recorded once while its fault is open, and again when it fails after a repair.
    """
    recorded = any(fault.is_open and "check" in fault.marks and not node_state.is_repaired(fault) for fault in known)
    positions = _find_read_positions(known)
    return [
        sighting
        for sighting in group
        if _is_after_position(sighting, positions) and not (recorded and sighting.source == "check")
    ]


def _find_read_positions(known: list[FaultRecord]) -> dict[str, Any]:
    """Return how far each source was read: the number in each boot if a source has numbers, else its mark."""
    positions: dict[str, Any] = {}
    for source, mark in (pair for fault in known for pair in fault.marks.items()):
        boot, _, number = mark.rpartition(":")
        key, position = (f"{source} {boot}", int(number)) if source in NUMBERED_SOURCES else (source, mark)
        positions[key] = max(positions.get(key, position), position)
    return positions


def _is_after_position(sighting: FaultSighting, positions: Mapping[str, Any]) -> bool:
    if sighting.source not in NUMBERED_SOURCES:
        return sighting.mark > str(positions.get(sighting.source, ""))
    boot, _, number = sighting.mark.rpartition(":")
    return int(number) > int(positions.get(f"{sighting.source} {boot}", -1))


def _is_same_fault(fault: FaultRecord, node_state: NodeState, *, is_old: bool) -> bool:
    """Whether a new sighting belongs to this fault. After a repair, or the circuit breaker, it is another fault.

    A sighting that `is_old` is of a boot that a repair ended: it belongs to a fault that is as old.
    """
    return fault.is_open and fault.response != "breaker" and node_state.is_repaired(fault) == is_old


def _start_fault(catalog: FaultCatalog, node: Node, name: str, subject: str, first: FaultSighting) -> FaultObservation:
    treatment = catalog.find_treatment(name)
    return FaultObservation(
        id=derive_id("fault", node.name, name, subject, first.source, first.mark),
        node=node.name,
        fault_class=name,
        subject=subject,
        severity=treatment.severity,
        blame=treatment.blame,
        remedy=treatment.remedy,
        count=0,
        first_seen=first.at,
        last_seen=first.at,
        detail=first.detail,
        marks={},
        times=(),
    )


def _continue_fault(node: Node, known: FaultRecord) -> FaultObservation:
    plain = {name: getattr(known, name) for name in FaultObservation.__slots__ if name not in ("node", "marks")}
    return FaultObservation(**plain, node=node.name, marks=dict(known.marks))
