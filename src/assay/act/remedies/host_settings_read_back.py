"""Reads the declared settings of one node's operating system with the probe, and restarts the host for the rest."""

from __future__ import annotations

import time
from dataclasses import dataclass

from assay.act.remedies.boot import read_boot_id, restart_node
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node import host_settings
from assay.model.specs.node.setting_mismatch import SettingMismatch, format_setting_mismatches
from assay.observe.transports.transport_choice import run_remote_probe

PROBE_S = 60.0
POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class HostSettingsReadBack:
    """The work on one node. `deadline_s` limits the wait for a restart.

    `settle_s`: how long services may take to start, and everything else after a boot.
    """

    fleet: Fleet
    node: Node
    deadline_s: float = 3600.0
    settle_s: float = 120.0

    def find_mismatches(self) -> list[SettingMismatch]:
        """Return the settings that read otherwise now; none where the profile leaves the operating system alone."""
        if not self.fleet.profile_of(self.node.name).host_settings:
            return []
        spec = self.fleet.spec_of(self.node.name)
        arguments = ["--areas", ",".join(host_settings.PROBE_AREAS), *host_settings.make_probe_arguments(spec)]
        tree = run_remote_probe(self.node, arguments, PROBE_S)["probe"]
        return host_settings.find_host_mismatches(spec, tree)

    def is_restart_needed(self, found: list[SettingMismatch]) -> bool:
        """Say whether a restart may bring the settings. It brings none that come from the image that a node boots."""
        return host_settings.needs_restart(found, self.fleet.spec_of(self.node.name).host.root)

    def restart(self) -> str:
        """Restart the host, and return its new boot id. Raises AssayError if settings still differ."""
        _, boot = restart_node(self.node, self.fleet, "ForceRestart", read_boot_id(self.node), self.deadline_s)
        self.require_no_mismatch(self.settle(""))
        return boot

    def settle(self, slow: str = "host.services.") -> list[SettingMismatch]:
        """Return what differs, after a wait if nothing else than settings whose names begin with `slow` differs."""
        ends_at = time.monotonic() + self.settle_s
        while found := self.find_mismatches():
            if time.monotonic() >= ends_at or not all(mismatch.name.startswith(slow) for mismatch in found):
                break
            time.sleep(POLL_S)
        return found

    def require_no_mismatch(self, found: list[SettingMismatch]) -> None:
        """Raise AssayError if there are mismatches."""
        if not found:
            return
        image = self.fleet.spec_of(self.node.name).host.root == "memory" and host_settings.needs_image(found)
        fix = "the node boots an image: build one with this kernel, command line and driver" if image else ""
        raise AssayError(f"read back: {format_setting_mismatches(found)}", where=self.node.name, fix=fix)
