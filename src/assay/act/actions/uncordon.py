"""The action `uncordon`: gives the node back, if it was us who closed it. Another's cordon stays, and is shown."""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.adapters.scheduler import SchedulerNodeStatus, read_node_status
from assay.model.cordon_ownership import is_our_reason

patience_s = 0.0
undone_by = ""
"""A decision of its own takes a node out of service again."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the reason of the present cordon."""
    return {"cordon": context.scheduler(intent.node).read_cordon_reason(intent.node)}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Undo our own cordon."""
    context.scheduler(intent.node).uncordon(intent.node)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the node has no cordon of ours."""
    return verify_uncordon_status(read_node_status(context.scheduler(intent.node), intent.node))


def verify_uncordon_status(status: SchedulerNodeStatus) -> EffectVerification:
    """Say whether a status proves that we gave the node back."""
    facts: EffectFacts = {"cordon": status.cordon}
    if is_our_reason(status.cordon):
        return EffectVerification(False, f"the node still has our own cordon: {status.cordon}", facts)
    if status.cordon:
        return EffectVerification(True, f"not cordoned by us; another's cordon stays: {status.cordon}", facts)
    return EffectVerification(True, "open for jobs")
