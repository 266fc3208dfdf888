"""The local accounts of a BMC against the node spec: what differs, and the requests that change it.

A password cannot be read. It is set when an account is created, and where a login with it was refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from assay.adapters.bmc.errors import error_for_response
from assay.adapters.bmc.resource import patch_resource, read_property
from assay.adapters.bmc.session import RedfishSession, Resource
from assay.model.errors import AssayError
from assay.model.reading import ReadingTree, parse_reading, value
from assay.model.specs.node.bmc_settings import BmcAccountSpec, BmcAccountsSpec
from assay.model.specs.node.declared_settings import SettingMismatch, format_reading

ABSENT = "absent"
ADMINISTRATOR = "Administrator"
HTTP_NOT_ALLOWED = 405
FACTORY_LOGINS = frozenset(
    {
        ("root", "calvin"),  # Dell iDRAC
        ("ADMIN", "ADMIN"),  # Supermicro
        ("root", "0penBmc"),  # OpenBMC, NVIDIA BlueField BMC
        ("USERID", "PASSW0RD"),  # Lenovo XCC
        ("admin", "admin"),  # AMI MegaRAC, NVIDIA DGX
        ("admin", "password"),  # Gigabyte
        ("Administrator", "Admin@9000"),  # Huawei iBMC, xFusion
    }
)
"""The logins that vendors' manuals print. assay compares its own with them, and tries none of them."""
_PROPERTIES = {"role": "RoleId", "enabled": "Enabled", "locked": "Locked"}


def list_accounts(bmc: RedfishSession) -> list[Resource]:
    """Return the accounts of a BMC, without empty slots."""
    service = bmc.follow(bmc.root, "AccountService", 2, 1)
    accounts = bmc.members(bmc.follow(service, "Accounts", 1))
    return [account for account in accounts if account.get("UserName")]


def read_accounts(bmc: RedfishSession) -> ReadingTree:
    """Return user name → `role`, `enabled`, `locked`, and `own`: whether assay logs in with this account."""
    return {
        str(account["UserName"]): {
            **{name: read_property(account, field) for name, field in _PROPERTIES.items()},
            "own": value(bmc.is_own_user(account["UserName"])),
        }
        for account in list_accounts(bmc)
    }


def find_factory_passwords(bmc: RedfishSession) -> list[str]:
    """Return the open accounts with their first password: by the BMC's word, or since assay logs in with a known one.

    No login is tried for it: a wrong one could lock an account.
    """
    return sorted(
        str(account["UserName"])
        for account in list_accounts(bmc)
        if account.get("Enabled") is not False
        and (account.get("PasswordChangeRequired") is True or bmc.is_own_login(account["UserName"], FACTORY_LOGINS))
    )


def name_account(user: str, part: str = "") -> str:
    """Return the path of an account, or of a part of it, in the node spec."""
    return f"bmc.accounts.users.{user}{part and f'.{part}'}"


def compare_accounts(wanted: BmcAccountsSpec, tree: Any) -> Iterator[SettingMismatch]:
    """Yield what differs from the spec in a tree of `read_accounts`."""
    if parse_reading(tree) is not None:
        for user in [*wanted.users, *(["*"] if wanted.complete else [])]:
            yield SettingMismatch(name_account(user), "as declared", format_reading(tree))
        return
    for user, account in wanted.users.items():
        if user in tree:
            yield from _compare_account(user, account, tree[user])
        else:
            yield SettingMismatch(name_account(user), account.role, ABSENT)
    others = [user for user in tree if wanted.complete and user not in wanted.users]
    for user in others:
        seen = format_reading(tree, user, "enabled")
        if seen != "false" and format_reading(tree, user, "own") != "true":
            yield SettingMismatch(name_account(user), "disabled", "enabled" if seen == "true" else seen)


def _compare_account(user: str, wanted: BmcAccountSpec, tree: Any) -> Iterator[SettingMismatch]:
    texts = {"role": wanted.role, "enabled": str(wanted.enabled).lower()}
    texts |= {} if wanted.locked is None else {"locked": "false"}
    for part, text in texts.items():
        if (seen := format_reading(tree, part)) != text:
            yield SettingMismatch(name_account(user, part), text, seen)


def find_new_passwords(wanted: BmcAccountsSpec, names: Collection[str]) -> list[str]:
    """Return the users whose password must be set: those of accounts that are absent or that refused it."""
    return [user for user in wanted.users if not {name_account(user), name_account(user, "password")}.isdisjoint(names)]


def refuse_own_account(bmc: RedfishSession, wanted: BmcAccountsSpec, names: Collection[str]) -> None:
    """Raise AssayError if a mismatch is of the account that assay logs in with: a change could lock it out."""
    parts = ("", *_PROPERTIES, "password")
    own = [name_account(user, part) for user in wanted.users if bmc.is_own_user(user) for part in parts]
    if wrong := set(own) & set(names):
        problem = f"assay does not change the account with which it logs in: {', '.join(sorted(wrong))}"
        raise AssayError(problem, where=bmc.where, fix="change it by hand, and bmc_credentials with it")


def change_accounts(
    bmc: RedfishSession, wanted: BmcAccountsSpec, names: Collection[str], passwords: Mapping[str, str]
) -> None:
    """Create the missing accounts, and write the properties that differ. Disable what must not be there."""
    there = {str(account["UserName"]): account for account in list_accounts(bmc)}
    for user, account in wanted.users.items():
        if user not in there:
            _create(bmc, user, passwords[user], account.role, enabled=account.enabled)
            continue
        body: dict[str, Any] = {"Password": passwords[user]} if user in passwords else {}
        for part, content in (("role", account.role), ("enabled", account.enabled), ("locked", False)):
            if name_account(user, part) in names:
                body[_PROPERTIES[part]] = content
        if body:
            patch_resource(bmc, there[user]["@odata.id"], body)
    for user, present in there.items():
        if user not in wanted.users and name_account(user) in names:
            patch_resource(bmc, present["@odata.id"], {"Enabled": False})


def give_account(bmc: RedfishSession, user: str, password: str) -> None:
    """Set the password of an account; one that does not exist is created, as an administrator."""
    account = _find_account(bmc, user)
    if account is None:
        _create(bmc, user, password, ADMINISTRATOR)
    else:
        patch_resource(bmc, account["@odata.id"], {"Password": password})


def disable_account(bmc: RedfishSession, user: str) -> None:
    """Let nobody log in as a user any more. Does nothing if there is none."""
    if account := _find_account(bmc, user):
        patch_resource(bmc, account["@odata.id"], {"Enabled": False})


def _find_account(bmc: RedfishSession, user: str) -> Resource | None:
    return next((account for account in list_accounts(bmc) if account["UserName"] == user), None)


def _create(bmc: RedfishSession, user: str, password: str, role: str, *, enabled: bool = True) -> None:
    """Create an account; where a BMC has a number of slots and creates none (405), fill an empty one."""
    service = bmc.follow(bmc.follow(bmc.root, "AccountService"), "Accounts")
    body = {"UserName": user, "Password": password, "RoleId": role, "Enabled": enabled}
    response = bmc.request("post", service["@odata.id"], body=body)
    if response.status == HTTP_NOT_ALLOWED:
        empty = (slot for slot in bmc.members(service) if not slot.get("UserName"))
        slot = next((slot for slot in empty if str(slot.get("Id")) != "1"), None)  # IPMI's, for anonymous logins
        if slot:
            patch_resource(bmc, slot["@odata.id"], body)
            return
    if not 200 <= response.status < 300:
        raise error_for_response(response, "POST", service["@odata.id"], bmc.where)
