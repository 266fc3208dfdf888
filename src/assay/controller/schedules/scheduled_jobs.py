"""What schedules do: one function for each word of their vocabulary, but for `observe`, which the loop's passes do."""

from __future__ import annotations

from collections.abc import Mapping

from assay.controller.context import ControllerContext
from assay.controller.ingest.evidence_collection import scan_fabrics
from assay.controller.ingest.suite_runs import format_run_counts, judge_phase
from assay.controller.schedules.due_slots import SlotTask, read_fabric_name
from assay.controller.schedules.idle_verification import verify_idle
from assay.controller.schedules.slot_runner import SlotJob, SlotResult
from assay.controller.schedules.staleness_sweep import sweep_stale_nodes
from assay.controller.schedules.weekly_fabric import locate_week_page, record_fabric_week
from assay.fabric.scan import format_fabric_subject
from assay.model.specs.schedules import ScheduledWork


def run_scan_job(desk: ControllerContext, task: SlotTask) -> SlotResult:
    """Discover a fabric, keep what was found, and compare it with its design. Nodes are judged by it as they are."""
    found = scan_fabrics(desk, _list_fabric_nodes(desk, task.line.target))[task.line.target]
    return SlotResult("done", found.summary, {"verdict": found.verdict})


def run_week_job(desk: ControllerContext, task: SlotTask) -> SlotResult:
    """Look at a week of a fabric's scans, write its page, and judge it: what `assay validate --phase weekly` does.

    The week of a fabric that was never scanned begins with a scan.
    """
    design = desk.fleet.designs[task.line.target]
    names = _list_fabric_nodes(desk, design.name)
    if desk.evidence.latest(format_fabric_subject(design)) is None:
        scan_fabrics(desk, names)
    record_fabric_week(desk.fleet, desk.evidence, desk.reports, desk.clock.now(), design)
    result = judge_phase(desk, names, "weekly")
    page = locate_week_page(desk.reports, design).relative_to(desk.reports.parent)
    return SlotResult("done", f"{format_run_counts(result)}; its page is {page}", {"run": result.run.id})


SCHEDULED_JOBS: Mapping[ScheduledWork, SlotJob] = {
    "fabric-scan": run_scan_job,
    "fabric-evaluation": run_week_job,
    "idle-verification": verify_idle,
    "staleness-sweep": sweep_stale_nodes,
}


def _list_fabric_nodes(desk: ControllerContext, fabric: str) -> list[str]:
    return [node.name for node in desk.fleet.nodes.values() if read_fabric_name(node) == fabric]
