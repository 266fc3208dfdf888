"""Brings BIOS attributes and boot settings of one node to its spec: orders them all, then resets the host once.

Only readings decide. So a run that was killed is repeated: what was ordered is not ordered again, and a host that is
already starting is not reset again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from assay.act.actions.allowed_effects import require_effect
from assay.act.actions.polling import wait_until
from assay.act.remedies.boot import is_booting
from assay.adapters.bmc.bmc_client import open_fleet_bmc
from assay.adapters.bmc.system_settings import (
    declares_system_settings,
    find_system_mismatches,
    needs_reset,
    order_system_settings,
)
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node.setting_mismatch import SettingMismatch, format_setting_mismatches


@dataclass(frozen=True, slots=True)
class SystemSettingsUpdate:
    """The work on one node. `deadline_s` limits each wait for the host's start.

    `read_back_s` is how long a BMC may show old values after the host has started.
    """

    fleet: Fleet
    node: Node
    deadline_s: float
    read_back_s: float = 120.0

    def find_mismatches(self) -> list[SettingMismatch]:
        """Return what differs from the spec now. Raises AssayError if the BMC cannot be read."""
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            return find_system_mismatches(bmc, self.fleet.spec_of(self.node.name))

    def apply(self) -> list[SettingMismatch]:
        """Bring all settings to the spec, and return what differed. Raises AssayError, also if they read otherwise."""
        spec = self.fleet.spec_of(self.node.name)
        if not declares_system_settings(spec):
            return []
        wait_until(self._has_started, self.deadline_s, "the host has started", self.node.name)
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            mismatches = find_system_mismatches(bmc, spec)
            if not mismatches:
                return []
            if any(one.name == "boot.first" for one in mismatches):
                require_effect(self.fleet, self.node.name, "boot-order", "its boot order differs from the spec")
            order_system_settings(bmc, spec, mismatches)
            if not needs_reset(mismatches):
                return mismatches
            bmc.reset_system("ForceRestart" if bmc.read_power_state() != "Off" else "On")
        self._await_values()
        return mismatches

    def _has_started(self) -> bool | None:
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            return None if is_booting(bmc.system()) else True

    def _await_values(self) -> None:
        """Wait for the values. Raises AssayError if the host has started and the BMC still reads others."""
        started: list[float] = []

        def look() -> list[SettingMismatch] | None:
            with open_fleet_bmc(self.fleet, self.node) as bmc:
                mismatches = find_system_mismatches(bmc, self.fleet.spec_of(self.node.name))
                has_started = (bmc.system().get("BootProgress") or {}).get("LastState") == "OSRunning"
            if not mismatches:
                return []
            if not has_started:
                started.clear()
                return None
            started.append(time.monotonic())
            return mismatches if started[-1] - started[0] > self.read_back_s else None

        left = wait_until(look, self.deadline_s, "the BMC reads the new settings", self.node.name)
        if left:
            what = f"the BMC reads other settings after the reset: {format_setting_mismatches(left)}"
            raise AssayError(what, where=self.node.name)
