"""Looks at weeks of fabrics for the verbs that judge them."""

from __future__ import annotations

import sys
from collections.abc import Collection

from assay.cli.workspace import Workspace
from assay.controller.schedules.weekly_fabric import locate_week_page, record_fabric_week
from assay.fabric.scan import format_fabric_subject
from assay.fabric.weekly.evaluation import WeeklyEvaluation
from assay.fabric.weekly.week import DAYS
from assay.fabric.weekly.week_evidence import format_week_subject
from assay.model.fabric.fabric_design import FabricDesign
from assay.observe.evidence_store import EvidenceStore


def evaluate_fabric_week(desk: Workspace, design: FabricDesign, days: float = DAYS) -> WeeklyEvaluation:
    """Evaluate the stored scans of the last `days`, as `record_fabric_week` does."""
    return record_fabric_week(
        desk.fleet, EvidenceStore(desk.evidence_dir), desk.reports_dir, desk.clock.now(), design, days
    )


def evaluate_weeks_of_nodes(desk: Workspace, nodes: Collection[str], *, anew: bool) -> None:
    """Evaluate the week of each fabric that one of `nodes` hangs on, where it was ever scanned.

    Unless `anew`, a week that ends with the newest scan is left as it is.
    """
    names = dict.fromkeys(desk.fleet.nodes[node].settings.fabric or "" for node in nodes)
    for design in (desk.fleet.designs[name] for name in names if name in desk.fleet.designs):
        if _is_due(EvidenceStore(desk.evidence_dir), design, anew=anew):
            print(f"looking at a week of the fabric {design.name} …", file=sys.stderr)  # noqa: T201
            evaluate_fabric_week(desk, design)
            print(f"its page is {locate_week_page(desk.reports_dir, design)}", file=sys.stderr)  # noqa: T201


def _is_due(store: EvidenceStore, design: FabricDesign, *, anew: bool) -> bool:
    latest = store.latest(format_fabric_subject(design))
    week = None if anew else store.latest(format_week_subject(design.name))
    return latest is not None and (week is None or week.read("week", "newest").value != latest.digest())
