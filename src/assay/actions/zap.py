"""zap: bring the firmware to the bundle with playbooks/zap.yml. Proved by reading the BMC's inventory."""

from __future__ import annotations

from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.firmware import owed, told, unequal
from assay.actions.playbook import run_playbook
from assay.actions.updates import BmcUpdates
from assay.observe.bmc import bmc_of

patience_s = 600.0
READ_S = 30.0


def before(ctx: Context, intent: Intent) -> Facts:
    """Read the versions of everything that the bundle names for this node."""
    return {"firmware": _seen(ctx, intent.node)}


def run(ctx: Context, intent: Intent) -> None:
    """Run the playbook, whose tasks leave alone what is equal and adopt what is under way."""
    run_playbook(ctx, intent, "zap.yml", {})


def verify(ctx: Context, intent: Intent) -> Verification:
    """Done when every component that we keep on this node reads the bundle's version."""
    seen = _seen(ctx, intent.node)
    if stale := unequal(seen, owed(ctx.fleet, intent.node)):
        return Verification(False, told(stale), {"firmware": seen})
    return Verification(True, f"reads {ctx.fleet.bundle_of(intent.node).name}", {"firmware": seen})


def _seen(ctx: Context, node: str) -> dict[str, str]:
    wanted = {ident for component in owed(ctx.fleet, node) for ident in component.inventory}
    with bmc_of(ctx.fleet, ctx.fleet.nodes[node], READ_S) as bmc:
        seen = BmcUpdates(bmc).firmware()
    return {ident: seen.get(ident, "absent") for ident in sorted(wanted)}
