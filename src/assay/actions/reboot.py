"""reboot: restart the node with playbooks/reboot.yml. Proved by a new boot id, read through the probe."""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.actions.ansible_playbook import run_playbook
from assay.actions.boot import has_reset_since, read_boot_facts, verify_boot

patience_s = 1800.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the boot that runs now."""
    return read_boot_facts(ctx, intent.node)


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """Run the playbook, which restarts only a node that still runs the boot from before."""
    if has_reset_since(ctx.fleet.nodes[intent.node], ctx.fleet, intent.before):
        return
    run_playbook(ctx, intent, "reboot.yml", {"unless_after": intent.before.get("boot_id", "")})


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Compare the boot ids."""
    return verify_boot(ctx, intent)
