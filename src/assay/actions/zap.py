"""The action `zap`: brings the firmware to the bundle with playbooks/zap.yml. The BMC's inventory proves it."""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.actions.ansible_playbook import run_playbook
from assay.actions.firmware_stages import find_version_mismatches, format_mismatches, list_managed_components
from assay.actions.redfish_update_service import RedfishFirmwareUpdater
from assay.redfish.bmc_client import open_fleet_bmc

patience_s = 600.0
undone_by = ""
"""The bundle says which firmware is right. To go back, declare the older bundle."""
READ_S = 30.0


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the versions of every component that the bundle names for this node."""
    return {"firmware": _read_versions(context, intent.node)}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Run the playbook. Its tasks skip equal components and take over updates that are under way."""
    run_playbook(context, intent, "zap.yml", {})


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if every component that assay manages on this node has the bundle's version."""
    seen = _read_versions(context, intent.node)
    facts: EffectFacts = {"firmware": seen}
    if mismatches := find_version_mismatches(seen, list_managed_components(context.fleet, intent.node)):
        return EffectVerification(False, format_mismatches(mismatches), facts)
    return EffectVerification(True, f"has the firmware of {context.fleet.bundle_of(intent.node).name}", facts)


def _read_versions(context: ActionContext, node: str) -> dict[str, str]:
    components = list_managed_components(context.fleet, node)
    wanted = {ident for component in components for ident in component.inventory}
    with open_fleet_bmc(context.fleet, context.fleet.nodes[node], READ_S) as bmc:
        seen = RedfishFirmwareUpdater(bmc).read_versions()
    return {ident: seen.get(ident, "absent") for ident in sorted(wanted)}
