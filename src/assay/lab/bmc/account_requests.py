"""Handlers of requests that create, change and delete accounts. They are part of the node's state on disk."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.responses import Response

from assay.lab.bmc.account_service import ACCOUNTS
from assay.lab.bmc.authentication import ROLES, BmcAccount, digest_password
from assay.lab.bmc.odata_responses import no_content_answer, resource_answer
from assay.lab.bmc.redfish_errors import RedfishErrorResponse, not_found, not_in_list, not_writable, state_conflict
from assay.lab.bmc.reset_and_account_requests import require_privilege
from assay.lab.bmc.resource_tree import REDFISH_ROOT
from assay.lab.bmc.service_root import RESOURCE_TREE
from assay.lab.bmc.virtual_bmc import BmcRequest, require_string
from assay.lab.virtual_node_state import VirtualNodeState

MIN_PASSWORD_CHARS = 8
WRITABLE = {"UserName", "Password", "RoleId", "Enabled", "Locked"}


async def create_account(call: BmcRequest) -> Response:
    """POST to Accounts."""
    known = call.view.logins.accounts
    plain = await call.read_parameters(WRITABLE | {"AccountTypes"}, ("UserName", "Password", "RoleId"))
    if any(entry.user == plain["UserName"] for entry in known.values()):
        raise RedfishErrorResponse(400, "ResourceAlreadyExists", "There is an account with this name", "UserName")
    ident = str(max(map(int, known)) + 1)
    return await _store(call, BmcAccount(ident, ""), plain, 201)


async def change_account(call: BmcRequest) -> Response:
    """PATCH an account: one's own password, or anything with the privilege ConfigureUsers."""
    account = call.view.logins.accounts.get(call.ids[0])
    if account is None:
        raise not_found(call.request.url.path)
    plain = await call.read_parameters(WRITABLE | {"Id", "Name", "Links"})
    if set(plain) - {"Password"} or call.account is not account:
        require_privilege(call, "ConfigureUsers")
    for name in plain:
        if name not in WRITABLE:
            raise not_writable(name)
    return await _store(call, account, plain, 200)


async def delete_account(call: BmcRequest) -> Response:
    """DELETE an account. The first one cannot be deleted, so that somebody can always log in."""
    if call.ids[0] not in call.view.logins.accounts:
        raise not_found(call.request.url.path)
    if call.ids[0] == "1":
        raise state_conflict("The first account cannot be deleted")

    def without(state: VirtualNodeState, _: datetime) -> VirtualNodeState:
        return {**state, "accounts": {ident: one for ident, one in state["accounts"].items() if ident != call.ids[0]}}

    await call.bmc.change(without)
    await call.bmc.view()
    return no_content_answer()


async def _store(call: BmcRequest, account: BmcAccount, plain: dict[str, Any], status: int) -> Response:
    """Store an account with its changes, and answer with it."""
    if plain.get("Locked", False) is not False:
        raise not_in_list(plain["Locked"], "Locked")
    changed = {name: require_string(plain, name) for name in ("UserName", "Password") if name in plain}
    entry = {
        "user": changed.get("UserName", account.user),
        "digest": _digest(account.id, changed["Password"]) if "Password" in changed else account.digest,
        "role": _role(plain.get("RoleId", account.role)),
        "enabled": plain.get("Enabled", account.enabled) is True,
        "locked": plain.get("Locked", account.locked),
        "must_change": account.must_change and "Password" not in changed,
    }
    await call.bmc.change(lambda state, _: {**state, "accounts": {**state["accounts"], account.id: entry}})
    path = f"{REDFISH_ROOT}{ACCOUNTS}/{account.id}"
    location = {"Location": path} if status == 201 else {}
    return resource_answer(RESOURCE_TREE.read(await call.bmc.view(), path), status, **location)


def _digest(ident: str, password: str) -> str:
    if len(password) < MIN_PASSWORD_CHARS:
        text = f"The password is too short; it needs {MIN_PASSWORD_CHARS} characters"
        raise RedfishErrorResponse(400, "PropertyValueFormatError", text, "", "Password")
    return digest_password(ident, password)


def _role(role: object) -> str:
    if role not in ROLES:
        raise not_in_list(role, "RoleId")
    return str(role)
