"""Brings the settings of one node's BMC to its spec. They are in force at once; the host is not touched.

Only readings decide, so a run that was killed is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.actions.polling import wait_until
from assay.model.configuration.setting_mismatch import SettingMismatch, format_setting_mismatches
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.redfish.bmc_client import open_fleet_bmc
from assay.redfish.bmc_settings import change_bmc_settings, compare_bmc_settings, read_own_settings


@dataclass(frozen=True, slots=True)
class BmcSettingsUpdate:
    """The work on one node. `read_back_s` is how long a BMC may show old values after a change."""

    fleet: Fleet
    node: Node
    read_back_s: float = 60.0

    @property
    def wanted(self) -> BmcSpec:
        """What the node's spec declares."""
        return self.fleet.spec_of(self.node.name).bmc

    def find_mismatches(self) -> list[SettingMismatch]:
        """Return what differs from the spec now. Raises AssayError if the BMC does not answer."""
        if self.wanted == BmcSpec():
            return []
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            return compare_bmc_settings(self.wanted, read_own_settings(bmc))

    def apply(self) -> list[SettingMismatch]:
        """Bring all settings to the spec, and return what differed. Raises AssayError, also if they read otherwise."""
        mismatches = self.find_mismatches()
        if not mismatches:
            return []
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            change_bmc_settings(bmc, self.wanted, mismatches)
        self._await_values()
        return mismatches

    def _await_values(self) -> None:
        left: list[SettingMismatch] = []

        def look() -> bool | None:
            left[:] = self.find_mismatches()
            return None if left else True

        try:
            wait_until(look, self.read_back_s, "the BMC reads the new settings", self.node.name)
        except AssayError:
            if not left:
                raise
            what = f"the BMC reads other settings after the change: {format_setting_mismatches(left)}"
            raise AssayError(what, where=self.node.name) from None
