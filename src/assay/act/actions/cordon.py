"""The action `cordon`: no new job starts on the node. The scheduler's status proves it."""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.adapters.scheduler import SchedulerNodeStatus, read_node_status

patience_s = 0.0
undone_by = "uncordon"


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the reason of the present cordon, whoever set it."""
    return {"cordon": context.scheduler(intent.node).read_cordon_reason(intent.node)}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Cordon the node with the decision's reason."""
    context.scheduler(intent.node).cordon(intent.node, intent.reason)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the node has a cordon, ours or another's, or no scheduler at all."""
    return verify_cordon_status(read_node_status(context.scheduler(intent.node), intent.node))


def verify_cordon_status(status: SchedulerNodeStatus) -> EffectVerification:
    """Say whether a status proves a cordon. A cordon that the scheduler lifts by itself does not count."""
    if not status.places_jobs:
        return EffectVerification(True, "no scheduler places jobs on this node")
    facts: EffectFacts = {"cordon": status.cordon}
    if status.is_closed:
        return EffectVerification(True, f"cordoned: {status.cordon}", facts)
    if status.cordon:
        reason = f"{status.cordon}; the scheduler opens the node by itself as soon as it answers"
        return EffectVerification(False, reason, facts)
    return EffectVerification(False, "in the scheduler, the node is open for jobs")
