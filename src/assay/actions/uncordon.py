"""uncordon: give the node back, as far as it was us who took it. Another's cordon is honoured and shown."""

from __future__ import annotations

from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.workloads import Standing, ours, standing_of

patience_s = 0.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the reason of the cordon that stands now."""
    return {"cordon": ctx.scheduler(intent.node).cordoned(intent.node)}


def run(ctx: Context, intent: Intent) -> None:
    """Undo our own cordon."""
    ctx.scheduler(intent.node).uncordon(intent.node)


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when no cordon of ours stands."""
    return judged(standing_of(ctx.scheduler(intent.node), intent.node))


def judged(standing: Standing) -> Verification:
    """Return what it means for giving a node back that it stands so with its scheduler."""
    reason = standing.cordon
    if ours(reason):
        return Verification(False, f"our own cordon still stands: {reason}", {"cordon": reason})
    if reason:
        return Verification(True, f"not cordoned by us; somebody else's cordon stands: {reason}", {"cordon": reason})
    return Verification(True, "open for jobs")
