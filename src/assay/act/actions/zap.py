"""The action `zap`: brings firmware to the bundle, starts the declared image, and brings settings to the spec.

The BMC's inventory, its settings and the probe's readings prove it.
"""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.boot.network_boot import boot_declared_image, find_other_image
from assay.act.remedies.ansible_playbook import run_playbook
from assay.act.remedies.bmc_updates import FirmwareUpdater
from assay.act.remedies.boot import read_boot_facts
from assay.act.remedies.firmware_stages import find_version_mismatches, format_mismatches, list_managed_components
from assay.act.remedies.settings import bring_configuration, find_configuration_mismatches, refuse_settings
from assay.adapters.bmc.client import open_fleet_bmc
from assay.model.errors import AssayError
from assay.model.specs.node.declared_settings import format_setting_mismatches
from assay.model.specs.node.settings_comparison import is_unknown

patience_s = 600.0
undone_by = ""
"""Bundle and spec say what is right. To go back, declare the older ones."""
READ_S = 30.0


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Read the versions of every component that the bundle names for this node, and the boot that runs now."""
    return {"firmware": _read_versions(context, intent.node), **read_boot_facts(context, intent.node)}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Bring firmware, image and settings, in this order. Each leaves alone what is equal."""
    refuse_settings(context.fleet, intent.node)  # before the firmware, not after it
    run_playbook(context, intent, "zap.yml", {})
    if find_other_image(context, intent.node):
        boot_declared_image(context, intent)
    bring_configuration(context, intent)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if all components that assay manages here have the bundle's versions, and all settings are as declared.

    It cannot tell if settings cannot be read and no other one differs.
    """
    seen = _read_versions(context, intent.node)
    facts: EffectFacts = {"firmware": seen}
    if mismatches := find_version_mismatches(seen, list_managed_components(context.fleet, intent.node)):
        return EffectVerification(False, format_mismatches(mismatches), facts)
    try:
        if other := find_other_image(context, intent.node):
            return EffectVerification(False, other, facts)
    except AssayError as error:
        return EffectVerification(None, str(error), facts)
    if settings := find_configuration_mismatches(context.fleet, intent.node):
        facts["settings"] = {mismatch.name: mismatch.seen for mismatch in settings}
        done = None if all(map(is_unknown, settings)) else False
        return EffectVerification(done, format_setting_mismatches(settings), facts)
    bundle, spec = context.fleet.bundle_of(intent.node), context.fleet.spec_of(intent.node)
    firmware = f"the firmware of {bundle.name} and " if bundle.components else ""
    return EffectVerification(True, f"has {firmware}the settings of {spec.name}", facts)


def _read_versions(context: ActionContext, node: str) -> dict[str, str]:
    components = list_managed_components(context.fleet, node)
    wanted = {ident for component in components for ident in component.inventory}
    if not wanted:
        return {}
    with open_fleet_bmc(context.fleet, context.fleet.nodes[node], READ_S) as bmc:
        seen = FirmwareUpdater(bmc).read_versions()
    return {ident: seen.get(ident, "absent") for ident in sorted(wanted)}
