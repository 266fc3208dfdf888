"""The action `drain-now`: no new job starts, and running jobs end now. The scheduler records and requeues them."""

from __future__ import annotations

from assay.act.actions import cordon
from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.remedies.gpu_occupancy import read_gpu_occupancy
from assay.adapters.scheduler import format_jobs, read_node_status

patience_s = 60.0
undone_by = "uncordon"
"""The ended jobs are the scheduler's to start again."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the jobs that will be ended, for the ledger."""
    return {"jobs": [str(job) for job in context.scheduler(intent.node).list_jobs(intent.node)]}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Cordon the node and end its jobs."""
    context.scheduler(intent.node).drain(intent.node, intent.reason, now=True)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if no job may start, no customer's job is left, and no process is known to hold a GPU.

    Where no scheduler places jobs, only the node's own reading can say so.

    Lost jobs do not count: the node does not answer its scheduler, and only a restart of the node ends them.
    """
    status = read_node_status(context.scheduler(intent.node), intent.node)
    closed = cordon.verify_cordon_status(status)
    if not closed.done:
        return closed
    if running := [job for job in status.jobs if not job.is_lost]:
        facts: EffectFacts = {"jobs": [str(job) for job in running]}
        return EffectVerification(False, f"still running: {format_jobs(running)}", facts)
    ended = intent.before.get("jobs", [])
    reason = f"ended and requeued: {', '.join(ended)}" if ended else "no customer job was running"
    if status.jobs:
        reason = f"the node does not answer its scheduler; its restart ends what is left: {format_jobs(status.jobs)}"
    return read_gpu_occupancy(context, intent.node).confirm_drain(status, reason, by_force=True)
