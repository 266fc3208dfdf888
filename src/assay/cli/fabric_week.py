"""Looks at weeks of fabrics for the verbs that judge them."""

from __future__ import annotations

import sys
from collections.abc import Collection

from assay.cli.desk import Desk
from assay.controller.clock.week import look_at_week, page_of
from assay.fabric.scan import subject_name
from assay.fabric.weekly.evaluation import Evaluation
from assay.fabric.weekly.kept import week_name
from assay.fabric.weekly.week import DAYS
from assay.model.design import FabricDesign
from assay.observe.store import EvidenceStore


def look_at(desk: Desk, design: FabricDesign, days: float = DAYS) -> Evaluation:
    """Evaluate the stored scans of the last `days`, as `look_at_week` does."""
    return look_at_week(desk.fleet, EvidenceStore(desk.evidence), desk.reports, desk.clock.now(), design, days)


def look_at_weeks(desk: Desk, nodes: Collection[str], *, anew: bool) -> None:
    """Evaluate the week of each fabric that one of `nodes` hangs on, where it was ever scanned.

    Unless `anew`, a week that ends with the newest scan is left as it is.
    """
    names = dict.fromkeys(str(desk.fleet.nodes[node].variables.get("fabric", "")) for node in nodes)
    for design in (desk.fleet.designs[name] for name in names if name in desk.fleet.designs):
        if _is_due(EvidenceStore(desk.evidence), design, anew=anew):
            print(f"looking at a week of the fabric {design.name} …", file=sys.stderr)  # noqa: T201
            look_at(desk, design)
            print(f"its page is {page_of(desk.reports, design)}", file=sys.stderr)  # noqa: T201


def _is_due(store: EvidenceStore, design: FabricDesign, *, anew: bool) -> bool:
    latest = store.latest(subject_name(design))
    week = None if anew else store.latest(week_name(design.name))
    return latest is not None and (week is None or week.read("week", "newest").value != latest.digest())
