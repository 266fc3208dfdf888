"""Faults that are over by themselves: of which a log has been silent for long enough, or a number is back in bounds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from assay.lifecycle.classify import Cleared
from assay.lifecycle.story import Known, Story
from assay.lifecycle.when import moment, spoken
from assay.model.evidence import Evidence
from assay.model.faults import FaultCatalog, Threshold
from assay.model.outcome import Recorded

LOGS = {"kernel": ("probe", "kernel_log", "lines"), "nvml": ("probe", "kernel_log", "lines"), "sel": ("bmc", "events")}


def recovered_in(catalog: FaultCatalog, story: Story, evidence: Evidence) -> list[Cleared]:
    """Return the open faults whose class has a `recover_hours` that has passed, in logs that this evidence holds.

    A log that could not be read is not silent. A fault that moved the node, or waits to, stays until the node is
    proved again, and so does every class that does not say when it is over.
    """
    return [
        Cleared(known.id, f"not seen again for {spoken(quiet)}")
        for known in story.faults
        if known.open and known.answer != "acted" and known.marks and known.marks.keys() <= LOGS.keys()
        for quiet in _quiet(catalog, known, evidence)
    ]


def back_in_bounds(catalog: FaultCatalog, story: Story, outcomes: Iterable[Recorded]) -> list[Cleared]:
    """Return the open faults of a measurement that a younger outcome on the same subject has within bounds again."""
    judged = [one for one in outcomes if one.outcome.verdict in ("pass", "fail")]
    return [
        Cleared(known.id, said)
        for known in story.faults
        if known.open and known.answer != "acted" and set(known.marks) == {"check"}
        for rule in [catalog.class_of(known.fault_class)]
        if rule and rule.measurement
        for one in judged
        if one.outcome.subject == known.subject and moment(one.measured_at) > moment(known.last_seen)
        if (said := _within(rule.measurement, one))
    ]


def _within(bound: Threshold, one: Recorded) -> str:
    """Return what an outcome measured, "" where it measured something else, or anything beyond the bound."""
    numbers = [number for number in one.outcome.measurements if number.name == bound.name]
    if any(bound.beyond(number.name, number.value) for number in numbers):
        return ""
    return ", ".join(f"{number.name} is {number.value:g} {number.unit}".rstrip() for number in numbers)


def _quiet(catalog: FaultCatalog, known: Known, evidence: Evidence) -> list[timedelta]:
    """Return how long the logs have been silent, nothing where that is not long enough or not known."""
    rule = catalog.class_of(known.fault_class)
    if rule is None or rule.recover_hours is None:
        return []
    if any(evidence.read(*LOGS[source]).kind != "value" for source in known.marks):
        return []
    since = evidence.at - moment(known.last_seen)
    return [since] if since >= timedelta(hours=rule.recover_hours) else []
