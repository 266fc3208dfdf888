"""drain-now: no new job starts, and the running ones end now; the scheduler requeues and records them."""

from __future__ import annotations

from assay.actions import cordon
from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.actions.gpu_occupancy import read_gpu_occupancy
from assay.schedulers.scheduler_adapter import format_jobs, read_node_status

patience_s = 60.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the jobs that will be ended: the ledger keeps their names."""
    return {"jobs": [str(job) for job in ctx.scheduler(intent.node).list_jobs(intent.node)]}


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """Cordon the node and end its jobs."""
    ctx.scheduler(intent.node).drain(intent.node, intent.reason, now=True)


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done when no job may start, no customer's job is left, and no process is known to hold a GPU.

    A job that its scheduler lost with the node is left to the restart: nobody else can end it.
    """
    standing = read_node_status(ctx.scheduler(intent.node), intent.node)
    if not (closed := cordon.verify_cordon_status(standing)).done:
        return closed
    running, lost = ([job for job in standing.jobs if job.is_lost is gone] for gone in (False, True))
    if running:
        return EffectVerification(
            False, f"still running: {format_jobs(running)}", {"jobs": [str(job) for job in running]}
        )
    ended = intent.before.get("jobs", [])
    told = f"ended and requeued: {', '.join(ended)}" if ended else "no customer job was running"
    if lost:
        told = f"the node does not answer its scheduler, and what is left ends with its restart: {format_jobs(lost)}"
    return read_gpu_occupancy(ctx, intent.node).confirm_drain(EffectVerification(True, told), by_force=True)
