"""Brings the settings of one node to its spec, and reads them: BMC, BIOS and boot by Redfish, the host's by the probe.

Only readings decide, so a run that was killed is repeated: what was ordered is not ordered again, and a host that is
already starting is not reset again. BMC settings are in force at once; BIOS and boot settings are all ordered before
one reset. A node whose root is in memory loses its settings at each boot, so a restart applies them again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from assay.act.actions.action import ActionContext, EffectIntent, require_effect, wait_until
from assay.act.remedies.ansible_playbook import run_playbook
from assay.act.remedies.boot import is_booting, read_boot_id, restart_node
from assay.adapters.bmc.accounts import find_new_passwords, name_account
from assay.adapters.bmc.client import accepts_login, open_fleet_bmc
from assay.adapters.bmc.settings import (
    change_bmc_settings,
    compare_bmc_settings,
    declares_system_settings,
    find_system_mismatches,
    needs_reset,
    order_system_settings,
    read_own_settings,
)
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.declare.stand_ins import SETTING_FIELDS, refuse_spec
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node import settings_comparison
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.model.specs.node.declared_settings import (
    SETTING_ROLES,
    SettingMismatch,
    find_setting,
    format_setting_mismatches,
)
from assay.model.text.lists import format_list
from assay.observe.transports.transport import run_remote_probe


@frozen
class BmcSettingsUpdate:
    """The work on one node. `read_back_s` is how long a BMC may show old values after a change.

    With `check_passwords`, assay logs in once as each declared user, and sets a password that the BMC refuses. Without,
    it sets passwords only of accounts that it creates: each wrong login counts towards the BMC's lock-out.
    """

    fleet: Fleet
    node: Node
    read_back_s: float = 60.0
    check_passwords: bool = False

    @property
    def wanted(self) -> BmcSpec:
        """What the node's spec declares."""
        return self.fleet.spec_of(self.node.name).bmc

    def find_mismatches(self) -> list[SettingMismatch]:
        """Return what differs from the spec now. Raises AssayError if the BMC does not answer."""
        mismatches = self._read_mismatches()
        return [*mismatches, *self._refused_passwords(mismatches)] if self.check_passwords else mismatches

    def apply(self) -> list[SettingMismatch]:
        """Bring all settings to the spec, and return what differed. Raises AssayError, also if they read otherwise."""
        mismatches = self.find_mismatches()
        if not mismatches:
            return []
        if others := [mismatch.name.rpartition(".")[2] for mismatch in mismatches if mismatch.wanted == "disabled"]:
            reason = f"its BMC has {format_list(others)}, which the spec does not name"
            require_effect(self.fleet, self.node.name, "other-accounts", reason)
        refuse_spec(self.fleet, self.fleet.spec_of(self.node.name), "a change of the BMC's settings", "bmc")
        passwords = self._read_passwords(
            find_new_passwords(self.wanted.accounts, [mismatch.name for mismatch in mismatches])
        )
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            change_bmc_settings(bmc, self.wanted, mismatches, passwords)
        self._await_values()
        for user, password in passwords.items():
            if self.wanted.accounts.users[user].enabled and not accepts_login(self.fleet, self.node, user, password):
                message = f"the BMC took the password of {user}, but refuses the login with it"
                raise AssayError(message, where=self.node.name)
        return mismatches

    def _read_mismatches(self) -> list[SettingMismatch]:
        if self.wanted == BmcSpec():
            return []
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            return compare_bmc_settings(self.wanted, read_own_settings(bmc))

    def _refused_passwords(self, mismatches: list[SettingMismatch]) -> Iterator[SettingMismatch]:
        unsettled = {mismatch.name for mismatch in mismatches}
        for user, account in self.wanted.accounts.users.items():
            parts = {name_account(user), name_account(user, "enabled"), name_account(user, "locked")}
            if account.password is None or not account.enabled or parts & unsettled:
                continue
            if not accepts_login(self.fleet, self.node, user, self._read_passwords([user])[user]):
                yield SettingMismatch(name_account(user, "password"), "as declared", "another one")

    def _read_passwords(self, users: list[str]) -> dict[str, str]:
        """Return the declared passwords. Raises AssayError if one is not declared, or if its place is empty."""
        passwords = {}
        for user in users:
            where, reference = f"{self.node.name} {name_account(user)}", self.wanted.accounts.users[user].password
            if reference is None:
                raise AssayError("the account needs a password", where=where, fix="declare `password` in the node spec")
            passwords[user] = read_secret(reference, self.fleet.root)
            if not passwords[user]:
                raise AssayError(f"{describe_reference(reference)} gives no password", where=where, fix="put it there")
        return passwords

    def _await_values(self) -> None:
        left: list[SettingMismatch] = []

        def look() -> bool | None:
            left[:] = self._read_mismatches()
            return None if left else True

        try:
            wait_until(look, self.read_back_s, "the BMC reads the new settings", self.node.name)
        except AssayError:
            if not left:
                raise
            message = f"the BMC reads other settings after the change: {format_setting_mismatches(left)}"
            raise AssayError(message, where=self.node.name) from None


@frozen
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
        if not declares_system_settings(self.fleet.spec_of(self.node.name)):
            return []
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
            if any(mismatch.name == "boot.first" for mismatch in mismatches):
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
            message = f"the BMC reads other settings after the reset: {format_setting_mismatches(left)}"
            raise AssayError(message, where=self.node.name)


PROBE_S = 60.0
POLL_S = 2.0


@frozen
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
        arguments = [
            "--areas",
            ",".join(settings_comparison.PROBE_AREAS),
            *settings_comparison.make_probe_arguments(spec),
        ]
        tree = run_remote_probe(self.node, arguments, PROBE_S)["probe"]
        return settings_comparison.find_host_mismatches(spec, tree)

    def is_restart_needed(self, mismatches: list[SettingMismatch]) -> bool:
        """Say whether a restart may bring the settings. It brings none that come from the image that a node boots."""
        return settings_comparison.needs_restart(mismatches, self.fleet.spec_of(self.node.name).host.root)

    def restart(self) -> str:
        """Restart the host, and return its new boot id. Raises AssayError if settings still differ."""
        _, boot = restart_node(self.node, self.fleet, "ForceRestart", read_boot_id(self.node), self.deadline_s)
        self.require_no_mismatch(self.settle(""))
        return boot

    def settle(self, slow: str = "host.services.") -> list[SettingMismatch]:
        """Return what differs, after a wait if nothing else than settings whose names begin with `slow` differs."""
        ends_at = time.monotonic() + self.settle_s
        while mismatches := self.find_mismatches():
            if time.monotonic() >= ends_at or not all(mismatch.name.startswith(slow) for mismatch in mismatches):
                break
            time.sleep(POLL_S)
        return mismatches

    def require_no_mismatch(self, mismatches: list[SettingMismatch]) -> None:
        """Raise AssayError if there are mismatches."""
        if not mismatches:
            return
        image = self.fleet.spec_of(self.node.name).host.root == "memory" and settings_comparison.needs_image(mismatches)
        fix = "the node boots an image: build one with this kernel, command line and driver" if image else ""
        raise AssayError(f"read back: {format_setting_mismatches(mismatches)}", where=self.node.name, fix=fix)


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
    node, mismatches = fleet.nodes[name], list[SettingMismatch]()
    roles = {SETTING_ROLES[setting].role for setting in settings}
    if "system_settings" in roles:
        mismatches += SystemSettingsUpdate(fleet, node, READ_S).find_mismatches()
    if "bmc_settings" in roles:
        mismatches += BmcSettingsUpdate(fleet, node).find_mismatches()
    if any(SETTING_ROLES[setting].home != "bmc" for setting in settings):
        mismatches += HostSettingsReadBack(fleet, node).find_mismatches()
    return [mismatch for mismatch in mismatches if find_setting(mismatch.name) in settings]


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
