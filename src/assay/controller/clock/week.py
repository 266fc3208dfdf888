"""Gathers the week of a fabric from its stored scans: kept as evidence, which the checks judge, and as a page."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from assay.fabric.design import plan
from assay.fabric.many import many_objects
from assay.fabric.scan import subject_name
from assay.fabric.weekly.evaluation import Evaluation, evaluate
from assay.fabric.weekly.gather import gather
from assay.fabric.weekly.kept import as_evidence, from_evidence
from assay.fabric.weekly.page import as_page
from assay.fabric.weekly.rails import rails_of
from assay.fabric.weekly.week import DAYS
from assay.model.design import FabricDesign
from assay.model.errors import Trouble
from assay.model.fleet import Fleet
from assay.observe.store import EvidenceStore, write_whole


def look_at_week(
    fleet: Fleet, store: EvidenceStore, reports: Path, now: datetime, design: FabricDesign, days: float = DAYS
) -> Evaluation:
    """Evaluate the stored scans of the last `days`. Raises Trouble for a fabric that was never scanned.

    A whole week is kept as evidence, and its page in `reports/weekly/`; a look at any other time is not kept.
    """
    latest = store.latest(subject_name(design))
    if latest is None:
        raise Trouble(f"the fabric {design.name} was never scanned", fix=f"run `assay fabric scan {design.name}`")
    cables = list(plan(design, fleet).cables)
    with many_objects():
        document = as_evidence(gather(design.name, cables, latest, store.get, now, days))
        one = evaluate(from_evidence(document), cables, rails_of(fleet, design), design.limits)
    if days == DAYS:
        store.put(document)
        write_whole(page_of(reports, design), as_page(one).encode())
    return one


def page_of(reports: Path, design: FabricDesign) -> Path:
    """Return where the page of a fabric's week is."""
    return reports / "weekly" / f"{design.name}.html"
