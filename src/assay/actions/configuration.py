"""Reads all settings that a node's spec declares: BIOS and boot by Redfish, the operating system's by the probe."""

from __future__ import annotations

from assay.actions.host_settings_read_back import HostSettingsReadBack
from assay.actions.system_settings_update import SystemSettingsUpdate
from assay.model.configuration.setting_mismatch import SettingMismatch
from assay.model.fleet import Fleet

READ_S = 60.0


def find_configuration_mismatches(fleet: Fleet, name: str) -> list[SettingMismatch]:
    """Return every declared setting that reads otherwise, or cannot be read. Raises AssayError for a BMC that is away.

    Settings of the operating system count only where the node's management profile lets assay bring them.
    """
    node = fleet.nodes[name]
    by_redfish = SystemSettingsUpdate(fleet, node, READ_S).find_mismatches()
    return [*by_redfish, *HostSettingsReadBack(fleet, node).find_mismatches()]
