"""Brings the settings of one node's BMC to its spec. They are in force at once; the host is not touched.

Only readings decide, so a run that was killed is repeated. Passwords cannot be read: see `check_passwords`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.act.actions.allowed_effects import require_effect
from assay.act.actions.polling import wait_until
from assay.adapters.bmc.bmc_accounts import find_new_passwords, name_account
from assay.adapters.bmc.bmc_client import accepts_login, open_fleet_bmc
from assay.adapters.bmc.bmc_settings import change_bmc_settings, compare_bmc_settings, read_own_settings
from assay.declare.secret_lookup import describe_reference, read_secret
from assay.declare.stand_ins import refuse_spec
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node.bmc_settings import BmcSpec
from assay.model.specs.node.setting_mismatch import SettingMismatch, format_setting_mismatches
from assay.model.text.text_lists import format_list


@dataclass(frozen=True, slots=True)
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
        if others := [one.name.rpartition(".")[2] for one in mismatches if one.wanted == "disabled"]:
            what = f"its BMC has {format_list(others)}, which the spec does not name"
            require_effect(self.fleet, self.node.name, "other-accounts", what)
        refuse_spec(self.fleet, self.fleet.spec_of(self.node.name), "a change of the BMC's settings", "bmc")
        passwords = self._read_passwords(find_new_passwords(self.wanted.accounts, [one.name for one in mismatches]))
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            change_bmc_settings(bmc, self.wanted, mismatches, passwords)
        self._await_values()
        self._prove_passwords(passwords)
        return mismatches

    def _read_mismatches(self) -> list[SettingMismatch]:
        if self.wanted == BmcSpec():
            return []
        with open_fleet_bmc(self.fleet, self.node) as bmc:
            return compare_bmc_settings(self.wanted, read_own_settings(bmc))

    def _refused_passwords(self, mismatches: list[SettingMismatch]) -> Iterator[SettingMismatch]:
        unsettled = {one.name for one in mismatches}
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
            what = f"the BMC reads other settings after the change: {format_setting_mismatches(left)}"
            raise AssayError(what, where=self.node.name) from None

    def _prove_passwords(self, passwords: Mapping[str, str]) -> None:
        for user, password in passwords.items():
            if self.wanted.accounts.users[user].enabled and not accepts_login(self.fleet, self.node, user, password):
                what = f"the BMC took the password of {user}, but refuses the login with it"
                raise AssayError(what, where=self.node.name)
