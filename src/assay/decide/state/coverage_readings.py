"""The coverage of a node's GPUs as readings, so that checks can judge it: the channel `coverage` of its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from assay.decide.state.load_coverage import GpuCoverage, PartCoverage
from assay.decide.state.visit_plan import UNIT_PART
from assay.model.reading import ReadingTree, value
from assay.model.timestamps import parse_time


def describe_coverage(
    gpus: Mapping[str, GpuCoverage], parts: Sequence[str], since: datetime, now: datetime
) -> ReadingTree:
    """Return the readings of GPUs by slot: `serial`, and for each of `parts` what `_describe_part` says.

    `since`: when the node came into service. A part that never covered a GPU is as old as that.
    """
    return {
        slot: {
            "serial": value(gpu.serial),
            "parts": {part: _describe_part(part, gpu.find(part), since, now) for part in parts},
        }
        for slot, gpu in gpus.items()
    }


def _describe_part(name: str, part: PartCoverage, since: datetime, now: datetime) -> ReadingTree:
    """Return `age_hours`, `seen` (whether it ever covered the GPU), `visits`, and `units` over all visits."""
    at = parse_time(part.covered_at) if part.covered_at else since
    units = {"units": value(part.units)} if name == UNIT_PART else {}
    age = round(max(0.0, (now - at).total_seconds()) / 3600, 2)
    return {"age_hours": value(age), "seen": value(bool(part.covered_at)), "visits": value(part.visits), **units}
