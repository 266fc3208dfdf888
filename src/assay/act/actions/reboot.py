"""The action `reboot`: restarts the node with playbooks/reboot.yml. A new boot id, read by the probe, proves it."""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.boot.network_boot import order_image_at_next_boot, restore_asset_tag
from assay.act.remedies.ansible_playbook import run_playbook
from assay.act.remedies.boot import has_reset_since, read_boot_facts, verify_boot
from assay.act.remedies.settings import configure_after_boot

patience_s = 1800.0
undone_by = ""
"""A boot cannot be undone. Checks that passed before it no longer count."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the boot that runs now."""
    return read_boot_facts(context, intent.node)


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Run the playbook, which restarts the node only if it still runs the boot from before."""
    if not has_reset_since(context.fleet.nodes[intent.node], context.fleet, intent.before):
        order_image_at_next_boot(context, intent)
        run_playbook(context, intent, "reboot.yml", {"unless_after": intent.before.get("boot_id", "")})
    restore_asset_tag(context, intent)
    configure_after_boot(context, intent)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Compare the boot ids."""
    return verify_boot(context, intent)
