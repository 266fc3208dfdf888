"""The action `drain`: no new job starts, and running jobs end in their own time. Names the jobs that it waits for."""

from __future__ import annotations

from dataclasses import replace

from assay.act.actions import cordon
from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.remedies.gpu_occupancy import read_gpu_occupancy
from assay.adapters.scheduler import format_jobs, read_node_status

patience_s = 0.0
undone_by = "uncordon"


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the jobs that run now."""
    return {"jobs": [str(job) for job in context.scheduler(intent.node).list_jobs(intent.node)]}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Cordon the node and leave its jobs alone."""
    context.scheduler(intent.node).drain(intent.node, intent.reason)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if no job may start, no customer's job is left, and no process holds a GPU."""
    status = read_node_status(context.scheduler(intent.node), intent.node)
    closed = cordon.verify_cordon_status(status)
    if not closed.done:
        return closed
    if status.jobs:
        facts: EffectFacts = {"jobs": [str(job) for job in status.jobs]}
        return EffectVerification(False, f"waits for {format_jobs(status.jobs)}", facts, is_waiting=True)
    occupancy = read_gpu_occupancy(context, intent.node)
    confirmed = occupancy.confirm_drain(status, "no customer job is left", by_force=False)
    return replace(confirmed, is_waiting=confirmed.done is False)
