"""cordon: no new job starts on the node. Proved by the scheduler's own word."""

from __future__ import annotations

from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.workloads import Standing, standing_of

patience_s = 0.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the reason of the cordon that stands now, whoever set it."""
    return {"cordon": ctx.scheduler(intent.node).cordoned(intent.node)}


def run(ctx: Context, intent: Intent) -> None:
    """Cordon the node with the decision's reason."""
    ctx.scheduler(intent.node).cordon(intent.node, intent.reason)


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when a cordon stands, ours or another's; a node without a scheduler has nothing to hold back."""
    return judged(standing_of(ctx.scheduler(intent.node), intent.node))


def judged(standing: Standing) -> Verification:
    """Return what it means for a cordon that the node stands so. What its scheduler will lift by itself is none."""
    if not standing.places:
        return Verification(True, "no scheduler places jobs on this node")
    if standing.closed:
        return Verification(True, f"cordoned: {standing.cordon}", {"cordon": standing.cordon})
    if standing.cordon:
        told = f"{standing.cordon}; the scheduler opens it by itself as soon as it answers"
        return Verification(False, told, {"cordon": standing.cordon})
    return Verification(False, "the scheduler reads the node as open for jobs")
