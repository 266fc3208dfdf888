"""Reads from evidence what golden digests are learned from: the units of the battery, or series of training."""

from __future__ import annotations

from assay.model.evidence import EvidenceDocument
from assay.validate.active.site_training_run import SITE_TRAINING, read_site_training
from assay.validate.active.training_run import read_training_run
from assay.validate.active.unit_results import LoadRun, UnreadableRun, read_load_run

BATTERY = "battery"


def read_golden_run(evidence: EvidenceDocument, part: str) -> LoadRun:
    """Return the last run of a part, each golden number of it a unit. Raises UnreadableRun."""
    if part == SITE_TRAINING:
        return read_site_training(evidence).list_golden_units()
    branch = evidence.read("active", part)
    if branch.kind != "value":
        raise UnreadableRun("", branch.kind, branch.reason)
    return read_load_run(branch.value) if part == BATTERY else read_training_run(branch.value).list_golden_units()
