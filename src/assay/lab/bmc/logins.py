"""Logging in and out; making, changing and deleting accounts."""

from __future__ import annotations

from starlette.responses import Response

from assay.lab.bmc.accounts import ACCOUNTS, SESSIONS
from assay.lab.bmc.answers import nothing, resource_answer
from assay.lab.bmc.door import ROLES, Account
from assay.lab.bmc.errors import RedfishError, conflict, not_found, not_in_list, not_writable
from assay.lab.bmc.machine import Call, text
from assay.lab.bmc.root import TREE
from assay.lab.bmc.tree import ROOT

SHORTEST_PASSWORD = 8


async def log_in(call: Call) -> Response:
    """POST to Sessions: the token comes back in X-Auth-Token, the session's place in Location."""
    plain = await call.parameters({"UserName", "Password", "Context", "SessionType"}, ("UserName", "Password"))
    session = call.view.door.log_in(text(plain, "UserName"), text(plain, "Password"))
    path = f"{ROOT}{SESSIONS}/{session.id}"
    return resource_answer(TREE.read(call.view, path), 201, Location=path, X_Auth_Token=session.token)


async def log_out(call: Call) -> Response:
    """DELETE a session: anyone their own, those who manage users everyone's."""
    session = call.view.door.live_sessions().get(call.ids[0])
    if session is None:
        raise not_found(call.request.url.path)
    if call.account is not session.account:
        demand(call, "ConfigureUsers")
    del call.view.door.sessions[session.id]
    return nothing()


async def create_account(call: Call) -> Response:
    """POST to Accounts."""
    demand(call, "ConfigureUsers")
    known = call.view.door.accounts
    plain = await call.parameters(
        {"UserName", "Password", "RoleId", "Enabled", "Locked", "AccountTypes"}, ("UserName", "Password", "RoleId")
    )
    if any(entry.user == plain["UserName"] for entry in known.values()):
        raise RedfishError(400, "ResourceAlreadyExists", "There is an account with this name", "UserName")
    ident = str(max(map(int, known)) + 1)
    account = Account(ident, text(plain, "UserName"), _password(text(plain, "Password")), _role(plain["RoleId"]))
    account.enabled = plain.get("Enabled", True) is True
    known[ident] = account
    path = f"{ROOT}{ACCOUNTS}/{ident}"
    return resource_answer(TREE.read(call.view, path), 201, Location=path)


async def change_account(call: Call) -> Response:
    """PATCH an account: anyone their own password, the rest takes who manages users."""
    account = call.view.door.accounts.get(call.ids[0])
    if account is None:
        raise not_found(call.request.url.path)
    plain = await call.parameters({"UserName", "Password", "RoleId", "Enabled", "Id", "Name", "Locked", "Links"})
    if set(plain) - {"Password"} or call.account is not account:
        demand(call, "ConfigureUsers")
    for name in plain:
        if name not in {"UserName", "Password", "RoleId", "Enabled"}:
            raise not_writable(name)
    changed = {name: text(plain, name) for name in ("UserName", "Password") if name in plain}
    account.password = _password(changed.get("Password", account.password))
    account.user = changed.get("UserName", account.user)
    account.role = _role(plain.get("RoleId", account.role))
    account.enabled = plain.get("Enabled", account.enabled) is True
    return resource_answer(TREE.read(call.view, f"{ROOT}{ACCOUNTS}/{account.id}"))


async def delete_account(call: Call) -> Response:
    """DELETE an account, but never the first, which is the way back in."""
    demand(call, "ConfigureUsers")
    if call.ids[0] not in call.view.door.accounts:
        raise not_found(call.request.url.path)
    if call.ids[0] == "1":
        raise conflict("The first account cannot be deleted")
    call.view.door.drop_account(call.ids[0])
    return nothing()


def demand(call: Call, privilege: str) -> None:
    """Raise a 403 unless the caller has the privilege."""
    if call.account is None or privilege not in ROLES[call.account.role]:
        raise RedfishError(403, "InsufficientPrivilege", f"This needs the privilege {privilege}")


def _password(password: str) -> str:
    if len(password) < SHORTEST_PASSWORD:
        text = f"The password is too short; it needs {SHORTEST_PASSWORD} characters"
        raise RedfishError(400, "PropertyValueFormatError", text, "", "Password")
    return password


def _role(role: object) -> str:
    if role not in ROLES:
        raise not_in_list(role, "RoleId")
    return str(role)
