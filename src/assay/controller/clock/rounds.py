"""What schedules do: one function for each word of their vocabulary, but for `observe`, which the loop's passes do."""

from __future__ import annotations

from collections.abc import Mapping

from assay.controller.clock.idle import verify_idle
from assay.controller.clock.schedule import Ended, Work
from assay.controller.clock.staleness import look_for_stale
from assay.controller.clock.timetable import Task, fabric_of
from assay.controller.clock.week import look_at_week, page_of
from assay.controller.desk import Desk
from assay.controller.looking.judgement import counts_of, judged
from assay.controller.looking.look import look_at_fabrics
from assay.fabric.scan import subject_name
from assay.model.schedule import Does


def scan_fabric(desk: Desk, task: Task) -> Ended:
    """Discover a fabric, keep what was found, and compare it with its design. Nodes are judged by it as they are."""
    found = look_at_fabrics(desk, _nodes_on(desk, task.line.part))[task.line.part]
    return Ended("done", found.summary, {"verdict": found.verdict})


def evaluate_week(desk: Desk, task: Task) -> Ended:
    """Look at a week of a fabric's scans, write its page, and judge it: what `assay validate --phase weekly` does.

    The week of a fabric that was never scanned begins with a scan.
    """
    design = desk.fleet.designs[task.line.part]
    names = _nodes_on(desk, design.name)
    if desk.evidence.latest(subject_name(design)) is None:
        look_at_fabrics(desk, names)
    look_at_week(desk.fleet, desk.evidence, desk.reports, desk.clock.now(), design)
    result = judged(desk, names, "weekly")
    page = page_of(desk.reports, design).relative_to(desk.reports.parent)
    return Ended("done", f"{counts_of(result)}; its page is {page}", {"run": result.run.id})


WORKS: Mapping[Does, Work] = {
    "fabric-scan": scan_fabric,
    "fabric-evaluation": evaluate_week,
    "idle-verification": verify_idle,
    "staleness-sweep": look_for_stale,
}


def _nodes_on(desk: Desk, fabric: str) -> list[str]:
    return [node.name for node in desk.fleet.nodes.values() if fabric_of(node) == fabric]
