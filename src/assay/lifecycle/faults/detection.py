"""From sightings to faults: de-duplicated per class and part, counted, and of full severity only at their threshold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.lifecycle.decisions.requirements import settled_since
from assay.lifecycle.faults.counting_and_correlation import FaultCorrelator, FaultCounter
from assay.lifecycle.faults.sightings import ALERT_SOURCE as ALERT
from assay.lifecycle.faults.sightings import (
    FaultSighting,
    find_alert_sightings,
    find_boot_time,
    find_check_sightings,
    find_kernel_sightings,
    find_sel_sightings,
    map_parts_by_pci,
)
from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import derive_id
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fault_catalog import FaultBlame, FaultCatalog, FaultSeverity, Remedy
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node_spec import NodeSpec
from assay.model.timestamps import format_time, parse_time

NUMBERED_SOURCES = ("kernel", "nvml")
"""Sources that number what they tell, anew with each boot."""


@dataclass(frozen=True, slots=True)
class FaultObservation:
    """A fault that is new, or an open one that was seen again. Times are ISO 8601 UTC."""

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


@dataclass(frozen=True, slots=True)
class FaultClearance:
    """An open fault that a newer pass of its check has ended."""

    fault: str
    reason: str


def detect_faults(
    catalog: FaultCatalog,
    policy: LifecyclePolicy,
    node: Node,
    spec: NodeSpec,
    story: NodeState,
    evidence: EvidenceDocument | None = None,
    outcomes: Iterable[RecordedOutcome] = (),
) -> list[FaultObservation]:
    """Return the faults that this evidence and these outcomes add to what the story knows.

    Outcomes count in states that watch their phase; elsewhere the state's own requirements judge them. Evidence that
    is handed in twice, or an event log that is delivered whole each time, adds nothing the second time.
    """
    seen = list(find_check_sightings(catalog, _select_watched(policy, story, outcomes)))
    if evidence is not None:
        seen += drop_secondary_sightings(
            catalog, node, story, find_kernel_sightings(catalog, evidence, map_parts_by_pci(spec))
        )
        seen += _drop_before_boot(find_sel_sightings(catalog, evidence), evidence, story)
        seen += find_alert_sightings(evidence, map_parts_by_pci(spec))
    return count_sightings(catalog, node, story, seen)


def count_sightings(
    catalog: FaultCatalog, node: Node, story: NodeState, seen: Iterable[FaultSighting]
) -> list[FaultObservation]:
    """Return the faults that these sightings add to what the story knows, one for each class and part."""
    groups: dict[tuple[str, str], list[FaultSighting]] = {}
    for sighting in seen:
        subject = f"{node.subject}/{sighting.part}".rstrip("/")
        groups.setdefault((sighting.fault_class, subject), []).append(sighting)
    past = _group_known_faults(story, groups)
    found = [_fault(catalog, node, story, key, past.get(key, []), group) for key, group in sorted(groups.items())]
    return [fault for fault in found if fault]


def find_clearances(story: NodeState, outcomes: Iterable[RecordedOutcome]) -> list[FaultClearance]:
    """Return the open faults of checks that pass again on the same subject, on evidence younger than the fault.

    `outcomes` are the newest of all checks of the node: while one that tells of the same fault fails, or cannot be
    judged, another's pass ends nothing. A fault that was seen in a log stays until the node is proved again: silence
    is no cure. One that moved the node stays as well.
    """
    told: dict[tuple[str, str], list[RecordedOutcome]] = defaultdict(list)
    for one in outcomes:
        told[(one.outcome.fault, one.outcome.subject)].append(one)
    asked = [
        known for known in story.faults if known.is_open and known.response != "acted" and set(known.marks) == {"check"}
    ]
    return [
        FaultClearance(known.id, f"{proof.outcome.check.rpartition('::')[2]} passed again, {proof.id}")
        for known in asked
        if (proof := _proof(known, told.get((known.fault_class, known.subject), [])))
    ]


def _proof(known: FaultRecord, telling: Iterable[RecordedOutcome]) -> RecordedOutcome | None:
    """Return the youngest of the passes that end a fault, None where they do not."""
    judged = [one for one in telling if one.outcome.verdict != "skip"]
    young = [one for one in judged if parse_time(one.measured_at) > parse_time(known.last_seen)]
    if not young or any(one.outcome.verdict != "pass" for one in judged):
        return None
    return max(young, key=lambda one: (one.measured_at, one.id))


def find_alert_clearances(story: NodeState, fault: str, subject: str, because: str) -> list[FaultClearance]:
    """Return the open faults that the end of an alert ends: what alerts alone told of, and what moved no node."""
    return [
        FaultClearance(known.id, because)
        for known in story.faults
        if known.is_open and (known.fault_class, known.subject) == (fault, subject)
        if known.response != "acted" and set(known.marks) == {ALERT}
    ]


def _select_watched(
    policy: LifecyclePolicy, story: NodeState, outcomes: Iterable[RecordedOutcome]
) -> list[RecordedOutcome]:
    watched, start = set(policy.states[story.state].watch), settled_since(policy, story)
    return [one for one in outcomes if watched & set(one.outcome.phases) and parse_time(one.measured_at) >= start]


def _group_known_faults(
    story: NodeState, asked: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[FaultRecord]]:
    """Return what the story knows of these classes and subjects, in its order."""
    names, found = {name for name, _ in asked}, dict[tuple[str, str], list[FaultRecord]]()
    for known in story.faults:
        if known.fault_class in names:
            found.setdefault((known.fault_class, known.subject), []).append(known)
    return found


def drop_secondary_sightings(
    catalog: FaultCatalog, node: Node, story: NodeState, sightings: Iterable[FaultSighting]
) -> Iterator[FaultSighting]:
    """Leave out what belongs to the boot, to a repair, or to another fault of which it is the echo."""
    told = sorted(sightings, key=lambda sighting: sighting.at)
    echoes = _load_correlator(catalog, node, story, told[0].at) if told else FaultCorrelator(catalog)
    for sighting in told:
        if echoes.is_relevant(sighting.fault_class):
            at = parse_time(sighting.at).timestamp()
            if echoes.find_primary(sighting.fault_class, sighting.part, at):
                continue
            echoes.record(sighting.fault_class, sighting.part, at)
        if not _is_settling(catalog, story, sighting):
            yield sighting


def _load_correlator(catalog: FaultCatalog, node: Node, story: NodeState, at: str) -> FaultCorrelator:
    """Return the echoes that faults which the story knows may still have at that time."""
    echoes, since = (
        FaultCorrelator(catalog),
        format_time(parse_time(at) - timedelta(seconds=catalog.longest_follow_seconds)),
    )
    for known in story.faults:
        if known.last_seen >= since and known.fault_class in catalog.primary_faults:
            part = known.subject[len(node.subject) + 1 :]
            echoes.record(known.fault_class, part, parse_time(known.last_seen).timestamp())
    return echoes


def _is_settling(catalog: FaultCatalog, story: NodeState, sighting: FaultSighting) -> bool:
    """Whether a fault comes so soon after a boot or a repair that it belongs to that."""
    rule = catalog.find_class(sighting.fault_class)
    if rule is None or not rule.settle_seconds:
        return False
    if sighting.uptime_s is not None and sighting.uptime_s < rule.settle_seconds:
        return True
    since = parse_time(sighting.at) - parse_time(story.repaired_at)
    return timedelta() <= since < timedelta(seconds=rule.settle_seconds)


def _drop_before_boot(
    sightings: Iterable[FaultSighting], evidence: EvidenceDocument, story: NodeState
) -> list[FaultSighting]:
    """Leave out events from before this boot and before the node was known: an event log remembers for years."""
    start = min(find_boot_time(evidence) or evidence.at, parse_time(story.enrolled_at))
    return [sighting for sighting in sightings if parse_time(sighting.at) >= start]


def _fault(
    catalog: FaultCatalog,
    node: Node,
    story: NodeState,
    key: tuple[str, str],
    past: list[FaultRecord],
    group: list[FaultSighting],
) -> FaultObservation | None:
    name, subject = key
    group = _drop_known_sightings(group, past, story)
    if not group:
        return None
    group.sort(key=_order)
    same = next((known for known in reversed(past) if _is_same_fault(known, story)), None)
    begun = _continued(node, same) if same else _new(catalog, node, name, subject, group[0])
    return _add_sightings(catalog, begun, group)


def _order(sighting: FaultSighting) -> tuple[str, int, str]:
    """Return a key that sorts sightings by time, and those of one moment by their number where they have one."""
    number = int(sighting.mark.rpartition(":")[2]) if sighting.source in NUMBERED_SOURCES else 0
    return (sighting.at, number, sighting.mark)


def _drop_known_sightings(group: list[FaultSighting], past: list[FaultRecord], story: NodeState) -> list[FaultSighting]:
    """Return the sightings that no earlier reading of their source has told.

    A failing check is told once while its fault is open; one that fails after a repair is told again.
    """
    told = any(known.is_open and "check" in known.marks and known.last_seen > story.repaired_at for known in past)
    read = _find_read_positions(past)
    return [
        sighting
        for sighting in group
        if _is_after_position(sighting, read) and not (told and sighting.source == "check")
    ]


def _find_read_positions(past: list[FaultRecord]) -> dict[str, Any]:
    """Return how far each source has been read: by number and boot where it numbers, else by its mark."""
    read: dict[str, Any] = {}
    for source, mark in (pair for known in past for pair in known.marks.items()):
        boot, _, number = mark.rpartition(":")
        key, far = (f"{source} {boot}", int(number)) if source in NUMBERED_SOURCES else (source, mark)
        read[key] = max(read.get(key, far), far)
    return read


def _is_after_position(sighting: FaultSighting, read: Mapping[str, Any]) -> bool:
    if sighting.source not in NUMBERED_SOURCES:
        return sighting.mark > str(read.get(sighting.source, ""))
    boot, _, number = sighting.mark.rpartition(":")
    return int(number) > int(read.get(f"{sighting.source} {boot}", -1))


def _is_same_fault(known: FaultRecord, story: NodeState) -> bool:
    """Whether a new sighting belongs to this fault, or begins another: after a repair or the breaker it is another."""
    return known.is_open and known.response != "breaker" and known.last_seen > story.repaired_at


def _new(catalog: FaultCatalog, node: Node, name: str, subject: str, first: FaultSighting) -> FaultObservation:
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


def _continued(node: Node, known: FaultRecord) -> FaultObservation:
    plain = {name: getattr(known, name) for name in FaultObservation.__slots__ if name not in ("node", "marks")}
    return FaultObservation(**plain, node=node.name, marks=dict(known.marks))


def _add_sightings(catalog: FaultCatalog, fault: FaultObservation, group: list[FaultSighting]) -> FaultObservation:
    """Return the fault with the group's sightings in it; those of one burst count as one."""
    rule = catalog.find_class(fault.fault_class)
    counting = FaultCounter.for_class(rule, [parse_time(at).timestamp() for at in fault.times], fault.count)
    marks = dict(fault.marks)
    for sighting in group:
        counting.add(parse_time(sighting.at).timestamp(), sighting.counts)
        marks[sighting.source] = sighting.mark
    reached = counting.is_threshold_reached or "check" in marks  # a check has a threshold of its own
    return replace(
        fault,
        severity=catalog.find_treatment(fault.fault_class).severity if reached else "informational",
        count=counting.count,
        last_seen=max(fault.last_seen, group[-1].at),
        marks=marks,
        times=tuple(format_time(datetime.fromtimestamp(at, UTC)) for at in counting.recent),
    )
