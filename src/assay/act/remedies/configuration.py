"""Reads all settings that a node's spec declares: by Redfish BIOS, boot and BMC, by the probe the operating system's.

A node whose root is in memory loses its settings at each boot, so a restart applies them again.
"""

from __future__ import annotations

from collections.abc import Collection

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.remedies.ansible_playbook import run_playbook
from assay.act.remedies.bmc_settings_update import BmcSettingsUpdate
from assay.act.remedies.host_settings_read_back import HostSettingsReadBack
from assay.act.remedies.system_settings_update import SystemSettingsUpdate
from assay.declare.stand_ins import SETTING_FIELDS, refuse_spec
from assay.model.fleet import Fleet
from assay.model.specs.node.correction_rules import find_setting
from assay.model.specs.node.declared_settings import SETTING_ROLES
from assay.model.specs.node.setting_mismatch import SettingMismatch

READ_S = 60.0


def find_configuration_mismatches(fleet: Fleet, name: str) -> list[SettingMismatch]:
    """Return every declared setting that reads otherwise, or cannot be read. Raises AssayError for a BMC that is away.

    Settings of the operating system count only where the node's management profile lets assay bring them.
    """
    node = fleet.nodes[name]
    by_redfish = SystemSettingsUpdate(fleet, node, READ_S).find_mismatches()
    of_bmc = BmcSettingsUpdate(fleet, node).find_mismatches()
    return [*by_redfish, *of_bmc, *HostSettingsReadBack(fleet, node).find_mismatches()]


def find_mismatches_at(fleet: Fleet, name: str, settings: Collection[str]) -> list[SettingMismatch]:
    """Return which of these settings (paths of `SETTING_ROLES`) read otherwise, or cannot be read.

    Asks only the BMC, or only the probe, if none of them needs the other.
    """
    node, found = fleet.nodes[name], list[SettingMismatch]()
    roles = {SETTING_ROLES[setting].role for setting in settings}
    if "system_settings" in roles:
        found += SystemSettingsUpdate(fleet, node, READ_S).find_mismatches()
    if "bmc_settings" in roles:
        found += BmcSettingsUpdate(fleet, node).find_mismatches()
    if any(SETTING_ROLES[setting].home != "bmc" for setting in settings):
        found += HostSettingsReadBack(fleet, node).find_mismatches()
    return [one for one in found if find_setting(one.name) in settings]


def configure_after_boot(context: ActionContext, intent: EffectIntent) -> None:
    """Run configure.yml on a node whose root is in memory, if a setting reads otherwise. Leave other nodes alone."""
    if context.fleet.spec_of(intent.node).host.root == "memory":
        bring_configuration(context, intent)


def refuse_settings(fleet: Fleet, name: str) -> None:
    """Raise AssayError if the spec of a real node has an example among the settings of its BMC or its host."""
    refuse_spec(fleet, fleet.spec_of(name), "a change of settings", *SETTING_FIELDS)


def bring_configuration(context: ActionContext, intent: EffectIntent) -> None:
    """Run configure.yml if a declared setting reads otherwise. Raises AssayError."""
    if find_configuration_mismatches(context.fleet, intent.node):
        refuse_settings(context.fleet, intent.node)
        run_playbook(context, intent, "configure.yml", {})
