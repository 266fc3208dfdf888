"""uncordon: give the node back, as far as it was us who took it. Another's cordon is honoured and shown."""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.schedulers.scheduler_adapter import SchedulerNodeStatus, is_our_reason, read_node_status

patience_s = 0.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the reason of the cordon that stands now."""
    return {"cordon": ctx.scheduler(intent.node).read_cordon_reason(intent.node)}


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """Undo our own cordon."""
    ctx.scheduler(intent.node).uncordon(intent.node)


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done when no cordon of ours stands."""
    return verify_uncordon_status(read_node_status(ctx.scheduler(intent.node), intent.node))


def verify_uncordon_status(standing: SchedulerNodeStatus) -> EffectVerification:
    """Return what it means for giving a node back that it stands so with its scheduler."""
    reason = standing.cordon
    if is_our_reason(reason):
        return EffectVerification(False, f"our own cordon still stands: {reason}", {"cordon": reason})
    if reason:
        return EffectVerification(
            True, f"not cordoned by us; somebody else's cordon stands: {reason}", {"cordon": reason}
        )
    return EffectVerification(True, "open for jobs")
