"""drain-now: no new job starts, and the running ones end now; the scheduler requeues and records them."""

from __future__ import annotations

from assay.actions import cordon
from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.occupants import occupants
from assay.actions.workloads import named, standing_of

patience_s = 60.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the jobs that will be ended: the ledger keeps their names."""
    return {"jobs": [str(job) for job in ctx.scheduler(intent.node).jobs(intent.node)]}


def run(ctx: Context, intent: Intent) -> None:
    """Cordon the node and end its jobs."""
    ctx.scheduler(intent.node).drain(intent.node, intent.reason, now=True)


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when no job may start, no customer's job is left, and no process is known to hold a GPU.

    A job that its scheduler lost with the node is left to the restart: nobody else can end it.
    """
    standing = standing_of(ctx.scheduler(intent.node), intent.node)
    if not (closed := cordon.judged(standing)).done:
        return closed
    running, lost = ([job for job in standing.jobs if job.lost is gone] for gone in (False, True))
    if running:
        return Verification(False, f"still running: {named(running)}", {"jobs": [str(job) for job in running]})
    ended = intent.before.get("jobs", [])
    told = f"ended and requeued: {', '.join(ended)}" if ended else "no customer job was running"
    if lost:
        told = f"the node does not answer its scheduler, and what is left ends with its restart: {named(lost)}"
    return occupants(ctx, intent.node).settle(Verification(True, told), by_force=True)
