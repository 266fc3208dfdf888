"""reboot: restart the node with playbooks/reboot.yml. Proved by a new boot id, read through the probe."""

from __future__ import annotations

from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.boot import boot_facts, reset_since, verify_boot
from assay.actions.playbook import run_playbook

patience_s = 1800.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the boot that runs now."""
    return boot_facts(ctx, intent.node)


def run(ctx: Context, intent: Intent) -> None:
    """Run the playbook, which restarts only a node that still runs the boot from before."""
    if reset_since(ctx.fleet.nodes[intent.node], ctx.fleet, intent.before):
        return
    run_playbook(ctx, intent, "reboot.yml", {"unless_after": intent.before.get("boot_id", "")})


def verify(ctx: Context, intent: Intent) -> Verification:
    """Compare the boot ids."""
    return verify_boot(ctx, intent)
