"""Faults that are over by themselves: of which a log has been silent for long enough, or a number is back in bounds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from assay.lifecycle.faults.detection import FaultClearance
from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.model.evidence import EvidenceDocument
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fault_catalog import FaultCatalog, MeasurementThreshold
from assay.model.timestamps import format_duration, parse_time

LOG_PATHS = {
    "kernel": ("probe", "kernel_log", "lines"),
    "nvml": ("probe", "kernel_log", "lines"),
    "sel": ("bmc", "events"),
}


def find_quiet_recoveries(catalog: FaultCatalog, story: NodeState, evidence: EvidenceDocument) -> list[FaultClearance]:
    """Return the open faults whose class has a `recover_hours` that has passed, in logs that this evidence holds.

    A log that could not be read is not silent. A fault that moved the node, or waits to, stays until the node is
    proved again, and so does every class that does not say when it is over.
    """
    return [
        FaultClearance(known.id, f"not seen again for {format_duration(quiet)}")
        for known in story.faults
        if known.is_open and known.response != "acted" and known.marks and known.marks.keys() <= LOG_PATHS.keys()
        for quiet in _measure_quiet_time(catalog, known, evidence)
    ]


def find_measured_recoveries(
    catalog: FaultCatalog, story: NodeState, outcomes: Iterable[RecordedOutcome]
) -> list[FaultClearance]:
    """Return the open faults of a measurement that a younger outcome on the same subject has within bounds again."""
    judged = [one for one in outcomes if one.outcome.verdict in ("pass", "fail")]
    return [
        FaultClearance(known.id, said)
        for known in story.faults
        if known.is_open and known.response != "acted" and set(known.marks) == {"check"}
        for rule in [catalog.find_class(known.fault_class)]
        if rule and rule.measurement
        for one in judged
        if one.outcome.subject == known.subject and parse_time(one.measured_at) > parse_time(known.last_seen)
        if (said := _describe_within_bounds(rule.measurement, one))
    ]


def _describe_within_bounds(bound: MeasurementThreshold, one: RecordedOutcome) -> str:
    """Return what an outcome measured, "" where it measured something else, or anything beyond the bound."""
    numbers = [number for number in one.outcome.measurements if number.name == bound.name]
    if any(bound.is_exceeded(number.name, number.value) for number in numbers):
        return ""
    return ", ".join(f"{number.name} is {number.value:g} {number.unit}".rstrip() for number in numbers)


def _measure_quiet_time(catalog: FaultCatalog, known: FaultRecord, evidence: EvidenceDocument) -> list[timedelta]:
    """Return how long the logs have been silent, nothing where that is not long enough or not known."""
    rule = catalog.find_class(known.fault_class)
    if rule is None or rule.recover_hours is None:
        return []
    if any(evidence.read(*LOG_PATHS[source]).kind != "value" for source in known.marks):
        return []
    since = evidence.at - parse_time(known.last_seen)
    return [since] if since >= timedelta(hours=rule.recover_hours) else []
