"""cordon: no new job starts on the node. Proved by the scheduler's own word."""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.schedulers.scheduler_adapter import SchedulerNodeStatus, read_node_status

patience_s = 0.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the reason of the cordon that stands now, whoever set it."""
    return {"cordon": ctx.scheduler(intent.node).read_cordon_reason(intent.node)}


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """Cordon the node with the decision's reason."""
    ctx.scheduler(intent.node).cordon(intent.node, intent.reason)


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done when a cordon stands, ours or another's; a node without a scheduler has nothing to hold back."""
    return verify_cordon_status(read_node_status(ctx.scheduler(intent.node), intent.node))


def verify_cordon_status(standing: SchedulerNodeStatus) -> EffectVerification:
    """Return what it means for a cordon that the node stands so. What its scheduler will lift by itself is none."""
    if not standing.places_jobs:
        return EffectVerification(True, "no scheduler places jobs on this node")
    if standing.is_closed:
        return EffectVerification(True, f"cordoned: {standing.cordon}", {"cordon": standing.cordon})
    if standing.cordon:
        told = f"{standing.cordon}; the scheduler opens it by itself as soon as it answers"
        return EffectVerification(False, told, {"cordon": standing.cordon})
    return EffectVerification(False, "the scheduler reads the node as open for jobs")
