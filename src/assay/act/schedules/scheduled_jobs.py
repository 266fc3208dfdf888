"""The jobs of schedules: one function for each word of `does`, without `observe`, which the loop does itself."""

from __future__ import annotations

from collections.abc import Mapping

from assay.act.ingest.collection import scan_fabrics
from assay.act.ingest.suite_runs import format_run_counts, judge_phase
from assay.act.ingest.trend_evaluation import evaluate_trends, has_history, rank_worn_nodes
from assay.act.loop.context import ControllerContext
from assay.act.schedules.collectives_search import search_collectives
from assay.act.schedules.due_slots import SlotTask
from assay.act.schedules.idle_verification import verify_idle
from assay.act.schedules.slot_runner import SlotJob, SlotResult
from assay.act.schedules.staleness_sweep import sweep_stale_nodes
from assay.act.schedules.weekly_fabric import locate_week_report, record_fabric_week
from assay.fabric.scan import format_fabric_subject
from assay.ledger.copies.anchors import REGISTER_NAME, parse_anchor
from assay.ledger.copies.seal import AnchoredFleet
from assay.ledger.copies.sealing import seal_ledger
from assay.model.specs.schedules import ScheduledWork
from assay.model.text.lists import format_list


def run_scan_job(context: ControllerContext, task: SlotTask) -> SlotResult:
    """Scan a fabric, keep the discovery, and compare it with its design."""
    comparison = scan_fabrics(context, _list_fabric_nodes(context, task.line.target))[task.line.target]
    return SlotResult("done", comparison.summary, {"verdict": comparison.verdict})


def run_week_job(context: ControllerContext, task: SlotTask) -> SlotResult:
    """Evaluate a week of a fabric's scans, write its report, and judge it as `assay validate --phase weekly` does.

    A fabric that was never scanned is scanned first.
    """
    design = context.fleet.designs[task.line.target]
    names = _list_fabric_nodes(context, design.name)
    if context.evidence.latest(format_fabric_subject(design)) is None:
        scan_fabrics(context, names)
    record_fabric_week(context.fleet, context.evidence, context.reports, context.clock.now(), design)
    result = judge_phase(context, names, "weekly")
    report = locate_week_report(context.reports, design).relative_to(context.reports.parent)
    return SlotResult("done", f"{format_run_counts(result)}; its report is {report}", {"run": result.run.id})


def run_seal_job(context: ControllerContext, task: SlotTask) -> SlotResult:
    """Seal the ledger in the schedule's anchors, after a comparison with the seals that they keep already.

    The slot fails if an anchor keeps no seal of it. The hashes of all lines are not verified again: that is for
    `assay ledger verify`.
    """
    if context.fleet.is_lab:
        return SlotResult("done", "a rehearsal is not sealed: the anchors are those of the real ledger")
    ledger, register = context.ledger, context.home / REGISTER_NAME
    fleet = AnchoredFleet(context.fleet.root, ledger.file or ledger.server_url, register)
    anchors = [parse_anchor(name, fleet) for name in task.line.schedule.anchors]
    sealed = seal_ledger(ledger, anchors, register, context.now, f"schedule {task.line.name}")
    refusals = [seal.refusal for seal in sealed if seal.refusal]
    if refusals:
        return SlotResult("failed", "; ".join(refusals))
    return SlotResult("done", f"sealed in {format_list([seal.anchor for seal in sealed])}")


def run_trend_job(context: ControllerContext, task: SlotTask) -> SlotResult:
    """Find what gets worse in the fleet; close and open the warnings of trends."""
    if not has_history(context.reports):
        return SlotResult("done", "there is no history of measurements yet")
    context.progress(f"{task.line.name}: compares the measurements of the fleet …")
    evaluation = evaluate_trends(context)
    rank_worn_nodes(context)
    facts = {"opened": len(evaluation.opened), "closed": len(evaluation.closed), "demoted": len(evaluation.demoted)}
    return SlotResult("done", evaluation.summary, facts)


SCHEDULED_JOBS: Mapping[ScheduledWork, SlotJob] = {
    "fabric-scan": run_scan_job,
    "fabric-evaluation": run_week_job,
    "idle-verification": verify_idle,
    "collectives-search": search_collectives,
    "staleness-sweep": sweep_stale_nodes,
    "ledger-seal": run_seal_job,
    "trend-evaluation": run_trend_job,
}


def _list_fabric_nodes(context: ControllerContext, fabric: str) -> list[str]:
    return [node.name for node in context.fleet.nodes.values() if node.settings.fabric == fabric]
