"""cordon: no new job starts on the node. Proved by the scheduler's own word."""

from __future__ import annotations

from assay.actions.action import Context, Facts, Intent, Verification

patience_s = 0.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the reason of the cordon that stands now, whoever set it."""
    return {"cordon": ctx.scheduler(intent.node).cordoned(intent.node)}


def run(ctx: Context, intent: Intent) -> None:
    """Cordon the node with the decision's reason."""
    ctx.scheduler(intent.node).cordon(intent.node, intent.reason)


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when a cordon stands, ours or another's; a node without a scheduler has nothing to hold back."""
    scheduler = ctx.scheduler(intent.node)
    return judged(scheduler.places, scheduler.cordoned(intent.node) if scheduler.places else "")


def judged(places: bool, reason: str) -> Verification:
    """Return what it means for a cordon that the scheduler, if one places jobs here, tells this reason of one."""
    if not places:
        return Verification(True, "no scheduler places jobs on this node")
    if reason:
        return Verification(True, f"cordoned: {reason}", {"cordon": reason})
    return Verification(False, "the scheduler reads the node as open for jobs")
