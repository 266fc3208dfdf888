"""drain: no new job starts, and the running ones end in their own time. Names what it waits for."""

from __future__ import annotations

from dataclasses import replace

from assay.actions import cordon
from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.actions.gpu_occupancy import read_gpu_occupancy
from assay.schedulers.scheduler_adapter import format_jobs

patience_s = 0.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the jobs that run now."""
    return {"jobs": [str(job) for job in ctx.scheduler(intent.node).list_jobs(intent.node)]}


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """Cordon the node and leave its jobs alone."""
    ctx.scheduler(intent.node).drain(intent.node, intent.reason)


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done when no job may start, no customer's job is left, and no process holds a GPU."""
    if not (closed := cordon.verify(ctx, intent)).done:
        return closed
    jobs = ctx.scheduler(intent.node).list_jobs(intent.node)
    if jobs:
        facts: EffectFacts = {"jobs": [str(job) for job in jobs]}
        return EffectVerification(False, f"waits for {format_jobs(jobs)}", facts, is_waiting=True)
    left = read_gpu_occupancy(ctx, intent.node).confirm_drain(
        EffectVerification(True, "no customer job is left"), by_force=False
    )
    return replace(left, is_waiting=left.done is False)
