"""zap: bring the firmware to the bundle with playbooks/zap.yml. Proved by reading the BMC's inventory."""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.actions.ansible_playbook import run_playbook
from assay.actions.bmc_firmware import RedfishFirmwareUpdater
from assay.actions.firmware_update import find_version_mismatches, format_mismatches, list_managed_components
from assay.redfish.bmc import open_fleet_bmc

patience_s = 600.0
READ_S = 30.0


def before(ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the versions of everything that the bundle names for this node."""
    return {"firmware": _read_versions(ctx, intent.node)}


def run(ctx: ActionContext, intent: EffectIntent) -> None:
    """Run the playbook, whose tasks leave alone what is equal and adopt what is under way."""
    run_playbook(ctx, intent, "zap.yml", {})


def verify(ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done when every component that we keep on this node reads the bundle's version."""
    seen = _read_versions(ctx, intent.node)
    if stale := find_version_mismatches(seen, list_managed_components(ctx.fleet, intent.node)):
        return EffectVerification(False, format_mismatches(stale), {"firmware": seen})
    return EffectVerification(True, f"reads {ctx.fleet.bundle_of(intent.node).name}", {"firmware": seen})


def _read_versions(ctx: ActionContext, node: str) -> dict[str, str]:
    wanted = {ident for component in list_managed_components(ctx.fleet, node) for ident in component.inventory}
    with open_fleet_bmc(ctx.fleet, ctx.fleet.nodes[node], READ_S) as bmc:
        seen = RedfishFirmwareUpdater(bmc).firmware()
    return {ident: seen.get(ident, "absent") for ident in sorted(wanted)}
