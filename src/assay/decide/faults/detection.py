"""Detects faults from sightings: one for each class and part. A fault gets its full severity at its threshold.

What follows from another sighting, or is overridden by the driver's recovery action (XID 154), does not count. The open
faults of a node are bounded: what is above becomes one fault, so a node's token cannot fill the ledger.

What a flash, a restart, a wipe or a take-over of assay's own causes is no fault of the node: such a sighting is
recorded and does not count, and a failed check is judged anew. An act that failed causes nothing here, so what it left
behind is a fault.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.decide.faults.identity import IDENTITY_SOURCE, find_identity_sightings
from assay.decide.moves.evidence_validity import counts_in_stay
from assay.decide.state.node_state import EffectRecord, NodeState
from assay.model.evidence import EvidenceDocument
from assay.model.facts import extend, frozen
from assay.model.faults.bmc_events import drop_told_by_host, find_sel_sightings, map_bmc_gpus, name_own_parts
from assay.model.faults.counting import FaultCorrelator, FaultCounter, PrimaryFault, may_follow
from assay.model.faults.fault_record import NUMBERED_SOURCES, FaultBlame, FaultRecord, FaultSeverity, Remedy, list_boots
from assay.model.faults.sightings import (
    PART_NAME,
    UNKNOWN_PART,
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
from assay.model.specs.fault_catalog import EVENT_SECONDS, XID_NAMES, FaultCatalog
from assay.model.specs.fault_relations import OwnAct, matches
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.timestamps import format_time, parse_time

CLOCKS_APART = timedelta(minutes=1)
"""So far may the clock of a BMC or node be behind ours."""
NEVER = "9999"
"""Sorts after every time."""


@frozen
class _ActTime:
    """When one act of assay may show itself, and by what. Times are ISO 8601 UTC: they sort as text."""

    act: OwnAct
    effect: EffectRecord
    start: str
    end: str

    def causes(self, sighting: FaultSighting) -> bool:
        """Whether a sighting tells of this act."""
        return (
            self.start <= sighting.at <= self.end
            and matches(self.act.symptoms, sighting.fault_class)
            and matches(self.act.parts, sighting.part)
            and (self.act.events is None or re.search(self.act.events, sighting.detail) is not None)
        )


def tie_to_acts(
    acts: Sequence[OwnAct], node_state: NodeState, sightings: Iterable[FaultSighting]
) -> Iterator[FaultSighting]:
    """Yield the sightings. Those that an act of assay caused do not count, and name it; failed checks are left out."""
    seen = list(sightings)
    first = min((sighting.at for sighting in seen), default=NEVER)
    spans = [_find_time(act, effect, node_state) for effect in node_state.effects for act in acts]
    times = [span for span in spans if span is not None and first <= span.end]
    for sighting in seen:
        cause = next((each.effect for each in times if each.causes(sighting)), None)
        if cause is None:
            yield sighting
        elif sighting.source != "check":
            detail = f"{sighting.detail} [caused by assay's own {cause.action} of {cause.started_at}]"
            yield sighting._replace(counts=False, detail=detail)


def _find_time(act: OwnAct, effect: EffectRecord, node_state: NodeState) -> _ActTime | None:
    """Return when an act may show itself, None for one that failed or is of another kind.

    One that nobody has read back goes on until its node leaves the state. The clocks of BMCs and nodes may be off.
    """
    if effect.standing == "failed" or effect.action not in act.actions:
        return None
    goes_on = effect.standing != "verified" and effect.at >= node_state.since
    end = parse_time(effect.at) + timedelta(minutes=act.minutes)
    start = parse_time(effect.started_at or effect.at) - CLOCKS_APART
    return _ActTime(act, effect, format_time(start), NEVER if goes_on else format_time(end))


TELEMETRY_FLOODED = "telemetry.flooded"
FaultKey = tuple[str, str]
"""The class and the subject of a fault."""


def group_sightings(
    catalog: FaultCatalog, node: Node, known: Iterable[FaultRecord], sightings: Iterable[FaultSighting], most: int
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
        sighting._replace(
            fault_class=TELEMETRY_FLOODED, part="", detail=f"{text}; the first was {sighting.detail}", counts=True
        )
        for sighting in group
    ]


class LaterPrimaries:
    """When each primary fault was seen, by class and part."""

    def __init__(self, catalog: FaultCatalog, ordered: Iterable[FaultSighting]) -> None:
        self._catalog = catalog
        self._causes: dict[tuple[str, str], list[list[float]]] = {}
        self._times: defaultdict[PrimaryFault, list[float]] = defaultdict(list)
        for sighting in ordered:
            if sighting.fault_class in catalog.primary_faults:
                self._times[PrimaryFault(sighting.fault_class, sighting.part)].append(
                    parse_time(sighting.at).timestamp()
                )

    def has_one(self, sighting: FaultSighting, at: float) -> bool:
        """Whether a fault from which this sighting follows is seen just after it."""
        key = sighting.fault_class, sighting.part
        if key not in self._causes:
            others = (primary for primary in self._times if primary.name != sighting.fault_class)
            self._causes[key] = [self._times[primary] for primary in others if may_follow(self._catalog, *key, primary)]
        return any(_is_soon_after(times, at) for times in self._causes[key])


def _is_soon_after(times: list[float], at: float) -> bool:
    place = bisect_right(times, at)
    return place < len(times) and times[place] - at <= EVENT_SECONDS


def discount_overridden(catalog: FaultCatalog, sightings: Iterable[FaultSighting]) -> list[FaultSighting]:
    """Return the sightings, in their order; XIDs that a later recovery action of their GPU overrides do not count."""
    ordered, next_action = list(sightings), dict[str, FaultSighting]()
    for place in range(len(ordered) - 1, -1, -1):
        sighting = ordered[place]
        later = next_action.get(sighting.part)
        if later and sighting.fault_class.startswith(XID_NAMES):
            rule = catalog.find_recovery_action(later.fault_class)
            if rule is not None and 0 <= seconds_between(sighting.at, later.at) <= rule.overrides_seconds:
                ordered[place] = sighting._replace(counts=False)
        if sighting.part != UNKNOWN_PART and catalog.find_recovery_action(sighting.fault_class):
            next_action[sighting.part] = sighting
    return ordered


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one ISO 8601 time to another."""
    return (parse_time(later) - parse_time(earlier)).total_seconds()


@frozen
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
    in which GPU of the node each serial number was seen last. Evidence of another machine says nothing but that.
    """
    watched = set(policy.states[node_state.state].watch)
    counting = [
        recorded
        for recorded in outcomes
        if watched & set(recorded.outcome.phases) and counts_in_stay(policy, node_state, recorded)
    ]
    sightings = list(find_check_sightings(catalog, counting))
    if evidence is not None and (strangers := list(find_identity_sightings(node, node_state, evidence))):
        sightings += strangers
    elif evidence is not None:
        parts = map_parts_by_pci(spec)
        kernel = [
            sighting._replace(counts=False) if sighting.fault_class in spec.usual_faults else sighting
            for sighting in find_kernel_sightings(catalog, evidence, parts, spec.nvme.count)
        ]
        sightings += discount_overridden(catalog, drop_secondary_sightings(catalog, node, node_state, kernel))
        gpus = map_bmc_gpus(evidence, parts, last_gpus)
        named = name_own_parts(find_sel_sightings(catalog, evidence), gpus, node_state.faults)
        # A BMC keeps old events: those from before this boot, or the enrolment if that is earlier, do not count.
        start = min(find_boot_time(evidence) or evidence.at, parse_time(node_state.enrolled_at))
        by_bmc = [sighting for sighting in named if parse_time(sighting.at) >= start]
        sightings += drop_told_by_host(by_bmc, kernel, node_state.faults, parts.values())
        sightings += find_alert_sightings(evidence, parts)
    return count_sightings(catalog, node, node_state, sightings, policy.intake.node.open_faults)


def count_sightings(
    catalog: FaultCatalog, node: Node, node_state: NodeState, sightings: Iterable[FaultSighting], most: int
) -> list[FaultObservation]:
    """Return the faults that these sightings add to the known ones of the node, one for each class and part.

    What an act of assay caused is only recorded.
    """
    sightings = tie_to_acts(catalog.acts, node_state, sightings)
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
    # After a repair, or the wave of a pool, it is another fault. A sighting of a boot that a repair ended belongs to a
    # fault that is as old.
    open_faults = (fault for fault in reversed(known) if fault.is_open and not fault.is_held_by_wave)
    same = next((f for f in open_faults if node_state.is_repaired(f) == (is_old and not f.needs_people)), None)
    if same:
        fault = extend(FaultObservation, same, node=node.name, marks=dict(same.marks))
    else:
        fault = _start_fault(catalog, node, *key, group[0])
    rule = catalog.find_class(fault.fault_class)
    counter = FaultCounter.for_class(rule, [parse_time(at).timestamp() for at in fault.times], fault.count)
    marks = dict(fault.marks)
    for sighting in group:
        counter.add(parse_time(sighting.at).timestamp(), sighting.counts, sighting.times)
        marks[sighting.source] = sighting.mark
    reached = counter.is_threshold_reached or "check" in marks  # a check has a threshold of its own
    return replace(
        fault,
        severity=catalog.find_treatment(fault.fault_class).severity if reached else "informational",
        count=counter.count,
        last_seen=max(fault.last_seen, group[-1].at),
        # what counts first is what the fault tells of, not what came before and did not count
        detail=fault.detail if fault.times else next((each.detail for each in group if each.counts), fault.detail),
        marks=marks,
        times=tuple(format_time(datetime.fromtimestamp(at, UTC)) for at in counter.recent),
    )


def _order_key(sighting: FaultSighting) -> tuple[str, int, bool, str]:
    """Return a key that sorts sightings by time; those of one moment by number, if their source has numbers.

    Of several checks of a node, the one comes first that says which part it is.
    """
    number = int(sighting.mark.rpartition(":")[2]) if sighting.source in NUMBERED_SOURCES else 0
    return (sighting.at, number, PART_NAME.search(sighting.detail) is None, sighting.mark)


def _drop_known_sightings(
    group: list[FaultSighting], known: list[FaultRecord], node_state: NodeState
) -> list[FaultSighting]:
    """Return the sightings that no earlier reading of their source has shown.

    A failing check is recorded once while its fault is open, and again when it fails after a repair. So is another
    machine.
    """
    open_faults = (fault for fault in known if fault.is_open and not node_state.is_repaired(fault))
    recorded = {"check", IDENTITY_SOURCE} & {source for fault in open_faults for source in fault.marks}
    positions = _find_read_positions(known)
    return [
        sighting for sighting in group if _is_after_position(sighting, positions) and sighting.source not in recorded
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
