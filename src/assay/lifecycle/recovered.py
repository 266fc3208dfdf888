"""Faults that only a log told, and that are over because the log has been silent about them for long enough."""

from __future__ import annotations

from datetime import timedelta

from assay.lifecycle.classify import Cleared
from assay.lifecycle.story import Known, Story
from assay.lifecycle.when import moment, spoken
from assay.model.evidence import Evidence
from assay.model.faults import FaultCatalog

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


def _quiet(catalog: FaultCatalog, known: Known, evidence: Evidence) -> list[timedelta]:
    """Return how long the logs have been silent, nothing where that is not long enough or not known."""
    rule = catalog.class_of(known.fault_class)
    if rule is None or rule.recover_hours is None:
        return []
    if any(evidence.read(*LOGS[source]).kind != "value" for source in known.marks):
        return []
    since = evidence.at - moment(known.last_seen)
    return [since] if since >= timedelta(hours=rule.recover_hours) else []
