"""powercycle: cut the node's power through its BMC and give it back. Proved by a new boot id."""

from __future__ import annotations

from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.boot import boot_facts, force_off_and_on, reset_since, restarted_since, verify_boot, wait_for_boot
from assay.actions.node_lock import node_lock
from assay.observe.bmc import bmc_of

patience_s = 1800.0
WAIT_S = 1800.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the boot that runs now."""
    return boot_facts(ctx, intent.node)


def run(ctx: Context, intent: Intent) -> None:
    """ForceOff, see that it is off, On, and wait for the boot; nothing where the node runs another boot by now."""
    node, known = ctx.fleet.nodes[intent.node], str(intent.before.get("boot_id", ""))
    with node_lock(ctx.home, intent.node, WAIT_S):
        if restarted_since(node, ctx.fleet, known, WAIT_S) or reset_since(node, ctx.fleet, intent.before):
            return
        with bmc_of(ctx.fleet, node) as bmc:
            force_off_and_on(bmc, WAIT_S)
        wait_for_boot(node, known, WAIT_S)


def verify(ctx: Context, intent: Intent) -> Verification:
    """Compare the boot ids."""
    return verify_boot(ctx, intent)
