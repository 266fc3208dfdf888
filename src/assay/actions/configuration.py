"""Reads all settings that a node's spec declares: by Redfish BIOS, boot and BMC, by the probe the operating system's.

A node whose root is in memory loses its settings at each boot, so a restart applies them again.
"""

from __future__ import annotations

from assay.actions.action import ActionContext, EffectIntent
from assay.actions.ansible_playbook import run_playbook
from assay.actions.host_settings_read_back import HostSettingsReadBack
from assay.actions.settings.bmc_settings_update import BmcSettingsUpdate
from assay.actions.settings.system_settings_update import SystemSettingsUpdate
from assay.model.configuration.setting_mismatch import SettingMismatch
from assay.model.fleet import Fleet

READ_S = 60.0


def find_configuration_mismatches(fleet: Fleet, name: str) -> list[SettingMismatch]:
    """Return every declared setting that reads otherwise, or cannot be read. Raises AssayError for a BMC that is away.

    Settings of the operating system count only where the node's management profile lets assay bring them.
    """
    node = fleet.nodes[name]
    by_redfish = SystemSettingsUpdate(fleet, node, READ_S).find_mismatches()
    of_bmc = BmcSettingsUpdate(fleet, node).find_mismatches()
    return [*by_redfish, *of_bmc, *HostSettingsReadBack(fleet, node).find_mismatches()]


def configure_after_boot(context: ActionContext, intent: EffectIntent) -> None:
    """Run configure.yml on a node whose root is in memory, if a setting reads otherwise. Leave other nodes alone."""
    if context.fleet.spec_of(intent.node).host.root == "memory":
        bring_configuration(context, intent)


def bring_configuration(context: ActionContext, intent: EffectIntent) -> None:
    """Run configure.yml if a declared setting reads otherwise. Raises AssayError."""
    if find_configuration_mismatches(context.fleet, intent.node):
        run_playbook(context, intent, "configure.yml", {})
