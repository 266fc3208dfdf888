"""drain: no new job starts, and the running ones end in their own time. Names what it waits for."""

from __future__ import annotations

from dataclasses import replace

from assay.actions import cordon
from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.occupants import occupants
from assay.actions.workloads import named

patience_s = 0.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the jobs that run now."""
    return {"jobs": [str(job) for job in ctx.scheduler(intent.node).jobs(intent.node)]}


def run(ctx: Context, intent: Intent) -> None:
    """Cordon the node and leave its jobs alone."""
    ctx.scheduler(intent.node).drain(intent.node, intent.reason)


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when no job may start, no customer's job is left, and no process holds a GPU."""
    if not (closed := cordon.verify(ctx, intent)).done:
        return closed
    jobs = ctx.scheduler(intent.node).jobs(intent.node)
    if jobs:
        facts: Facts = {"jobs": [str(job) for job in jobs]}
        return Verification(False, f"waits for {named(jobs)}", facts, waiting=True)
    left = occupants(ctx, intent.node).settle(Verification(True, "no customer job is left"), by_force=False)
    return replace(left, waiting=left.done is False)
