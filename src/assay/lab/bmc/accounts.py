"""Sessions and accounts, as resources. Passwords and tokens are never among them."""

from __future__ import annotations

from assay.lab.bmc.door import ROLES, SESSION_TIMEOUT_S
from assay.lab.bmc.tree import Resource, View, collection, link, resource, status

PATH, SESSION_SERVICE = "/AccountService", "/SessionService"
ACCOUNTS, ALL_ROLES, SESSIONS = f"{PATH}/Accounts", f"{PATH}/Roles", f"{SESSION_SERVICE}/Sessions"


def session_service(_: View) -> Resource:
    """The session service."""
    return resource(
        "SessionService",
        "1_1_9",
        "SessionService",
        "Session service",
        ServiceEnabled=True,
        SessionTimeout=SESSION_TIMEOUT_S,
        Status=status(),
        Sessions=link(SESSIONS),
    )


def sessions(view: View) -> Resource:
    """Who is logged in."""
    return collection("Session", "Sessions", [f"{SESSIONS}/{ident}" for ident in view.door.live_sessions()])


def session(view: View, ident: str) -> Resource:
    """One login."""
    return resource("Session", "1_7_2", ident, "Session", UserName=view.door.live_sessions()[ident].account.user)


def account_service(_: View) -> Resource:
    """The account service."""
    return resource(
        "AccountService",
        "1_15_1",
        "AccountService",
        "Account service",
        ServiceEnabled=True,
        Status=status(),
        Accounts=link(ACCOUNTS),
        Roles=link(ALL_ROLES),
    )


def accounts(view: View) -> Resource:
    """All users."""
    return collection("ManagerAccount", "Accounts", [f"{ACCOUNTS}/{ident}" for ident in view.door.accounts])


def account(view: View, ident: str) -> Resource:
    """One user."""
    entry = view.door.accounts[ident]
    return resource(
        "ManagerAccount",
        "1_12_1",
        ident,
        "Account",
        UserName=entry.user,
        Password=None,
        RoleId=entry.role,
        Enabled=entry.enabled,
        Locked=False,
        AccountTypes=["Redfish"],
        Links={"Role": link(f"{ALL_ROLES}/{entry.role}")},
    )


def roles(_: View) -> Resource:
    """The fixed roles."""
    return collection("Role", "Roles", [f"{ALL_ROLES}/{name}" for name in ROLES])


def role(_: View, ident: str) -> Resource:
    """One role and what it may do."""
    privileges = ROLES[ident]
    return resource(
        "Role", "1_3_3", ident, ident, RoleId=ident, IsPredefined=True, AssignedPrivileges=privileges, OemPrivileges=[]
    )
