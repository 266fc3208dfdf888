"""The action `powercycle`: cuts the node's power through its BMC and restores it. A new boot id proves it."""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.boot.network_boot import order_image_at_next_boot, restore_asset_tag
from assay.act.remedies.boot import (
    force_off_and_on,
    has_reset_since,
    has_restarted_since,
    read_boot_facts,
    verify_boot,
    wait_for_boot,
)
from assay.act.remedies.settings import configure_after_boot
from assay.adapters.bmc.client import open_fleet_bmc
from assay.ledger.file_locks import hold_node_lock

patience_s = 1800.0
undone_by = ""
"""A boot cannot be undone. Checks that passed before it no longer count."""
WAIT_S = 1800.0


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the boot that runs now."""
    return read_boot_facts(context, intent.node)


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Force the node off, then on, and wait for the boot. Do nothing if the node runs another boot by now."""
    fleet, before_boot = context.fleet, str(intent.before.get("boot_id", ""))
    node = fleet.nodes[intent.node]
    with hold_node_lock(context.home, intent.node, WAIT_S):
        restarted = has_restarted_since(node, fleet, before_boot, WAIT_S)
        if not restarted and not has_reset_since(node, fleet, intent.before):
            order_image_at_next_boot(context, intent)
            with open_fleet_bmc(fleet, node) as bmc:
                force_off_and_on(bmc, WAIT_S)
            wait_for_boot(node, before_boot, WAIT_S)
        restore_asset_tag(context, intent)
    configure_after_boot(context, intent)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Compare the boot ids."""
    return verify_boot(context, intent)
