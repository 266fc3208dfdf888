"""powercycle: cut the node's power through its BMC and give it back. Proved by a new boot id."""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.actions.boot import (
    force_off_and_on,
    has_reset_since,
    has_restarted_since,
    read_boot_facts,
    verify_boot,
    wait_for_boot,
)
from assay.ledger.leases_and_locks import hold_node_lock
from assay.redfish.bmc import open_fleet_bmc

patience_s = 1800.0
WAIT_S = 1800.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the boot that runs now."""
    return read_boot_facts(ctx, intent.node)


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """ForceOff, see that it is off, On, and wait for the boot; nothing where the node runs another boot by now."""
    node, known = ctx.fleet.nodes[intent.node], str(intent.before.get("boot_id", ""))
    with hold_node_lock(ctx.home, intent.node, WAIT_S):
        if has_restarted_since(node, ctx.fleet, known, WAIT_S) or has_reset_since(node, ctx.fleet, intent.before):
            return
        with open_fleet_bmc(ctx.fleet, node) as bmc:
            force_off_and_on(bmc, WAIT_S)
        wait_for_boot(node, known, WAIT_S)


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Compare the boot ids."""
    return verify_boot(ctx, intent)
