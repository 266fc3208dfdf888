"""The services of a BMC as resources: sessions, accounts and roles, and subscriptions to events.

They never contain passwords or tokens.
"""

from __future__ import annotations

from assay.lab.bmc.authentication import ROLES, SESSION_TIMEOUT_S
from assay.lab.bmc.resource_tree import (
    Resource,
    ResourceView,
    make_collection,
    make_resource,
    make_status,
    resource_link,
)

ACCOUNT_SERVICE = "/AccountService"
ACCOUNTS = f"{ACCOUNT_SERVICE}/Accounts"
ALL_ROLES = f"{ACCOUNT_SERVICE}/Roles"
SESSION_SERVICE = "/SessionService"
SESSIONS = f"{SESSION_SERVICE}/Sessions"
EVENT_SERVICE = "/EventService"
SUBSCRIPTIONS = f"{EVENT_SERVICE}/Subscriptions"
SYSLOG_PROTOCOLS = ("SyslogTLS", "SyslogTCP", "SyslogUDP")


def session_service(_: ResourceView) -> Resource:
    """The session service."""
    return make_resource(
        "SessionService",
        "1_1_9",
        "SessionService",
        "Session service",
        ServiceEnabled=True,
        SessionTimeout=SESSION_TIMEOUT_S,
        Status=make_status(),
        Sessions=resource_link(SESSIONS),
    )


def sessions(view: ResourceView) -> Resource:
    """All login sessions."""
    return make_collection("Session", "Sessions", [f"{SESSIONS}/{ident}" for ident in view.logins.live_sessions()])


def session(view: ResourceView, ident: str) -> Resource:
    """One login session."""
    return make_resource("Session", "1_7_2", ident, "Session", UserName=view.logins.live_sessions()[ident].account.user)


def account_service(_: ResourceView) -> Resource:
    """The account service."""
    return make_resource(
        "AccountService",
        "1_15_1",
        "AccountService",
        "Account service",
        ServiceEnabled=True,
        Status=make_status(),
        Accounts=resource_link(ACCOUNTS),
        Roles=resource_link(ALL_ROLES),
    )


def accounts(view: ResourceView) -> Resource:
    """All users."""
    return make_collection("ManagerAccount", "Accounts", [f"{ACCOUNTS}/{ident}" for ident in view.logins.accounts])


def account(view: ResourceView, ident: str) -> Resource:
    """One user."""
    entry = view.logins.accounts[ident]
    return make_resource(
        "ManagerAccount",
        "1_12_1",
        ident,
        "Account",
        UserName=entry.user,
        Password=None,
        RoleId=entry.role,
        Enabled=entry.enabled,
        Locked=entry.locked,
        AccountTypes=["Redfish"],
        Links={"Role": resource_link(f"{ALL_ROLES}/{entry.role}")},
    )


def roles(_: ResourceView) -> Resource:
    """The fixed roles."""
    return make_collection("Role", "Roles", [f"{ALL_ROLES}/{name}" for name in ROLES])


def role(_: ResourceView, ident: str) -> Resource:
    """One role and its privileges."""
    privileges = ROLES[ident]
    return make_resource(
        "Role", "1_3_3", ident, ident, RoleId=ident, IsPredefined=True, AssignedPrivileges=privileges, OemPrivileges=[]
    )


def event_service(_: ResourceView) -> Resource:
    """The event service."""
    return make_resource(
        "EventService",
        "1_10_3",
        "EventService",
        "Event service",
        ServiceEnabled=True,
        Status=make_status(),
        EventFormatTypes=["Event"],
        DeliveryRetryAttempts=0,
        Subscriptions=resource_link(SUBSCRIPTIONS),
    )


def subscriptions(view: ResourceView) -> Resource:
    """All subscriptions."""
    paths = [f"{SUBSCRIPTIONS}/{ident}" for ident in view.state.get("subscriptions", {})]
    return make_collection("EventDestination", "Subscriptions", paths)


def subscription(view: ResourceView, ident: str) -> Resource:
    """One subscription."""
    entry = view.state.get("subscriptions", {})[ident]
    protocol = entry.get("protocol", "Redfish")
    return make_resource(
        "EventDestination",
        "1_15_1",
        ident,
        "Subscription",
        Destination=entry["destination"],
        Context=entry["context"],
        Protocol=protocol,
        SubscriptionType="Syslog" if protocol in SYSLOG_PROTOCOLS else "RedfishEvent",
        EventFormatType="Event",
        Status=make_status(),
    )
