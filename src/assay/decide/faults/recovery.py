"""Finds the open faults that are over: a newer pass, a quiet time, a value within bounds, or a resolved alert.

If a fault moved its node, it does not end here: it stays until checks prove the node healthy again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from assay.decide.faults.detection import FaultObservation, seconds_between
from assay.decide.faults.identity import IDENTITY_SOURCE, find_return
from assay.decide.faults.incidents import list_open_incidents
from assay.decide.state.node_state import NodeState
from assay.model.entries.faults import FaultClearedEntry
from assay.model.evidence import EvidenceDocument
from assay.model.faults.counting import PrimaryFault, may_follow
from assay.model.faults.fault_record import FaultRecord, rank_severity
from assay.model.faults.sightings import ALERT_SOURCE, UNKNOWN_PART
from assay.model.outcome import RecordedOutcome, read_part
from assay.model.specs.fault_catalog import EVENT_SECONDS, XID_NAMES, FaultCatalog, MeasurementThreshold
from assay.model.specs.fault_relations import FaultRelations
from assay.model.timestamps import format_duration, parse_time

LOG_PATHS = {
    "kernel": ("probe", "kernel_log", "lines"),
    "nvml": ("probe", "kernel_log", "lines"),
    "sel": ("bmc", "events"),
    "intake": ("probe", "kernel_log", "lines"),
}


OutcomeReader = Callable[[Collection[str]], Sequence[RecordedOutcome]]
"""Returns all outcomes of some checks on a node, whenever they were judged."""


def make_clearance(
    fault: FaultRecord, reason: str, seen_up_to: int = 0, *, is_taken_back: bool = False
) -> FaultClearedEntry:
    """Return the end of this fault, see `FaultClearedEntry`."""
    name = f"{fault.fault_class} on {fault.subject}"
    reason += "; the spec that made it a fault is taken back" if is_taken_back else ""
    return FaultClearedEntry(fault.id, reason, seen_up_to, name, is_taken_back)


def find_clearances(
    node_state: NodeState, outcomes: Iterable[RecordedOutcome], read_outcomes: OutcomeReader = lambda _: ()
) -> list[FaultClearedEntry]:
    """Return the open faults of checks that pass again on the same subject, on evidence newer than the fault.

    `outcomes` are the newest of all checks of the node. While one check of a fault fails or ends as an error, another
    check's pass does not end the fault.
    """
    judged: dict[tuple[str, str], list[RecordedOutcome]] = defaultdict(list)
    for recorded in outcomes:
        judged[(recorded.outcome.fault, recorded.outcome.subject)].append(recorded)
    return [
        make_clearance(fault, proof, is_taken_back=is_spec_taken_back(fault, passes, read_outcomes))
        for fault in _list_open_faults(node_state)
        if set(fault.marks) == {"check"}
        for passes in [judged.get((fault.fault_class, fault.subject), [])]
        for proof in [_find_proof(fault, passes)]
        if proof
    ]


def is_spec_taken_back(fault: FaultRecord, newest: Sequence[RecordedOutcome], read_outcomes: OutcomeReader) -> bool:
    """Whether a fault that a series holds was one by a spec only by which none of its checks is judged now.

    Each check that failed judges as it did when it passed before the fault. So a fault that comes and goes is not
    meant, nor one that ends after a change of what is asked which was never tried.
    """
    if not fault.open_series:
        return False
    start, today = parse_time(fault.first_seen), {each.outcome.check: each.outcome.judged_by for each in newest}
    failed, passed_before = set[tuple[str, str]](), set[tuple[str, str]]()
    for each in (each for each in read_outcomes([*today]) if each.outcome.subject == fault.subject):
        at, verdict = parse_time(each.measured_at), each.outcome.verdict
        if (verdict == "fail" and at >= start) or (verdict == "pass" and at <= start):
            (failed if verdict == "fail" else passed_before).add((each.outcome.check, each.outcome.judged_by))
    expected = {(check, today[check]) for check, _ in failed}
    return bool(failed) and not expected & failed and expected <= passed_before


def find_ended_consequences(
    relations: FaultRelations,
    node_state: NodeState,
    ended: Iterable[FaultClearedEntry],
    outcomes: Iterable[RecordedOutcome],
) -> list[FaultClearedEntry]:
    """Return the ends of what only logs told and what follows from a fault whose checks pass again.

    It is no worse than that, and was not seen again after the pass: the log of a BMC keeps what a repair mended.
    """
    causes, ends = {clearance.fault for clearance in ended}, list[FaultClearedEntry]()
    passed = {(each.outcome.fault, each.outcome.subject): each for each in outcomes}
    faults = {fault.id: fault for fault in _list_open_faults(node_state) if _is_log_fault(fault)}
    for incident in list_open_incidents(relations, node_state) if causes else ():
        cause = incident.cause
        proof = passed.get((cause.fault_class, cause.subject)) if cause.id in causes else None
        for fault in [faults[each.id] for each in incident.open_symptoms if each.id in faults] if proof else ():
            is_worse = rank_severity(fault.severity) < rank_severity(cause.severity)
            if proof and not is_worse and parse_time(fault.last_seen) < parse_time(proof.measured_at):
                reason = f"it followed from {cause.fault_class} on {cause.subject}, whose checks pass again"
                ends.append(make_clearance(fault, reason))
    return ends


def _is_log_fault(fault: FaultRecord) -> bool:
    """Whether only logs tell of a fault."""
    return bool(fault.marks) and {_kind(source) for source in fault.marks} <= LOG_PATHS.keys()


def find_measured_recoveries(
    catalog: FaultCatalog, node_state: NodeState, outcomes: Iterable[RecordedOutcome]
) -> list[FaultClearedEntry]:
    """Return the open faults of measurements that are within bounds again, in a newer outcome on the same subject."""
    judged = [recorded for recorded in outcomes if recorded.outcome.verdict in ("pass", "fail")]
    return [
        make_clearance(fault, text)
        for fault in _list_open_faults(node_state)
        if set(fault.marks) == {"check"}
        for rule in [catalog.find_class(fault.fault_class)]
        if rule and rule.measurement
        for recorded in judged
        if recorded.outcome.subject == fault.subject and parse_time(recorded.measured_at) > parse_time(fault.last_seen)
        if (text := _describe_within_bounds(rule.measurement, recorded))
    ]


def find_quiet_recoveries(
    catalog: FaultCatalog, node_state: NodeState, evidence: EvidenceDocument
) -> list[FaultClearedEntry]:
    """Return the open log faults that were not seen again for the `recover_hours` of their class.

    A log that could not be read does not count as quiet. Without `recover_hours`, a fault of the class does not end by
    itself.
    """
    return [
        make_clearance(fault, f"not seen again for {format_duration(quiet)}")
        for fault in _list_open_faults(node_state)
        if _is_log_fault(fault)
        for quiet in _measure_quiet_time(catalog, fault, evidence)
    ]


def find_identity_recoveries(
    node_state: NodeState, evidence: EvidenceDocument, outcomes: Iterable[RecordedOutcome]
) -> list[FaultClearedEntry]:
    """Return the open faults of another machine that end, as the node's own answers again, and no check of it fails."""
    failed = {
        (each.outcome.fault, each.outcome.subject) for each in outcomes if each.outcome.verdict in ("fail", "error")
    }
    return [
        make_clearance(fault, text)
        for fault in _list_open_faults(node_state)
        if IDENTITY_SOURCE in fault.marks and set(fault.marks) <= {IDENTITY_SOURCE, "check"}
        if (fault.fault_class, fault.subject) not in failed and (text := find_return(fault, evidence))
    ]


def find_overridden_faults(
    catalog: FaultCatalog, node_state: NodeState, observed: Iterable[FaultObservation]
) -> list[FaultClearedEntry]:
    """Return the open XIDs that a recovery action among the faults just found ends, unless they moved their node."""
    return [
        make_clearance(fault, f"the driver's recovery action: {action.detail}")
        for action in observed
        if (rule := catalog.find_recovery_action(action.fault_class)) and not action.subject.endswith(UNKNOWN_PART)
        for fault in node_state.faults
        if fault.id != action.id
        and fault.subject == action.subject
        and fault.is_open
        and fault.response != "acted"
        and fault.fault_class.startswith(XID_NAMES)
        if 0 <= seconds_between(fault.last_seen, action.last_seen) <= rule.overrides_seconds
    ]


def find_explained_faults(
    catalog: FaultCatalog, node_state: NodeState, observed: Iterable[FaultObservation]
) -> list[FaultClearedEntry]:
    """Return the open faults that began just before one just found and follow from it, unless they moved their node.

    The lines of one event may come in two deliveries, and in any order.
    """
    return [
        make_clearance(fault, f"it follows from {cause.fault_class} on {cause.subject}")
        for cause in observed
        if cause.fault_class in catalog.primary_faults and not cause.subject.endswith(UNKNOWN_PART)
        for fault in _list_open_faults(node_state)
        if fault.id != cause.id and _is_line_of_event(fault, cause)
        for primary in [PrimaryFault(cause.fault_class, read_part(cause.subject))]
        if may_follow(catalog, fault.fault_class, read_part(fault.subject), primary)
    ]


def _is_line_of_event(fault: FaultRecord, cause: FaultObservation) -> bool:
    """Whether a fault that only logs told began just before this one did."""
    return _is_log_fault(fault) and 0 <= seconds_between(fault.first_seen, cause.first_seen) <= EVENT_SECONDS


def find_alert_clearances(
    node_state: NodeState, fault_class: str, subject: str, because: str, source: str = ALERT_SOURCE
) -> list[FaultClearedEntry]:
    """Return the open faults that end with an alert or signal: only this source reported them."""
    return [
        make_clearance(fault, because)
        for fault in _list_open_faults(node_state)
        if (fault.fault_class, fault.subject) == (fault_class, subject) and set(fault.marks) == {source}
    ]


def find_lapsed_signals(node_state: NodeState, now: datetime) -> list[FaultClearedEntry]:
    """Return the open faults that only signals told of which held until a time that is over."""
    return [
        make_clearance(fault, f"nobody has said it again until {max(ends)}")
        for fault in _list_open_faults(node_state)
        for ends in [[mark.split("|")[2] for mark in fault.marks.values() if mark.count("|") == 2]]
        if ends and len(ends) == len(fault.marks) and parse_time(max(ends)) <= now
    ]


def _list_open_faults(node_state: NodeState) -> list[FaultRecord]:
    """Return the open faults that moved no node."""
    return [fault for fault in node_state.faults if fault.is_open and fault.response != "acted"]


def _find_proof(fault: FaultRecord, outcomes: Iterable[RecordedOutcome]) -> str:
    """Return what ends a fault: its checks pass, and the newest pass is newer than the fault. "" if nothing ends it."""
    judged = [recorded for recorded in outcomes if recorded.outcome.verdict != "skip"]
    newer = [recorded for recorded in judged if parse_time(recorded.measured_at) > parse_time(fault.last_seen)]
    if not newer or any(recorded.outcome.verdict != "pass" for recorded in judged):
        return ""
    last = max(newer, key=lambda recorded: (recorded.measured_at, recorded.id))
    which = f"all {len(judged)} checks of it passed, the last" if len(judged) > 1 else "passed again,"
    return f"{which} {last.id}"


def _describe_within_bounds(bound: MeasurementThreshold, recorded: RecordedOutcome) -> str:
    """Return the measured value of an outcome, "" if it measured something else, or anything out of bounds."""
    numbers = [number for number in recorded.outcome.measurements if number.name == bound.name]
    if any(bound.is_exceeded(number.name, number.value) for number in numbers):
        return ""
    return ", ".join(f"{number.name} is {number.value:g} {number.unit}".rstrip() for number in numbers)


def _measure_quiet_time(catalog: FaultCatalog, fault: FaultRecord, evidence: EvidenceDocument) -> list[timedelta]:
    """Return how long the logs of a fault have been quiet, an empty list if that is too short or unknown."""
    rule = catalog.find_class(fault.fault_class)
    if rule is None or rule.recover_hours is None:
        return []
    if any(evidence.read(*LOG_PATHS[_kind(source)]).kind != "value" for source in fault.marks):
        return []
    quiet = evidence.at - parse_time(fault.last_seen)
    return [quiet] if quiet >= timedelta(hours=rule.recover_hours) else []


def _kind(source: str) -> str:
    """Return the kind of a source: a BMC's event logs have a source each, `sel LOG`."""
    return source.partition(" ")[0]
