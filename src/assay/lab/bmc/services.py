"""The services of a BMC as resources: sessions, accounts and roles, events (subscriptions, and what is delivered).

They never contain passwords or tokens.
"""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.authentication import ROLES, SESSION_TIMEOUT_S
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
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
STREAM = f"{REDFISH_ROOT}{EVENT_SERVICE}/SSE"
TEST_EVENT = f"{REDFISH_ROOT}{EVENT_SERVICE}/Actions/EventService.SubmitTestEvent"


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
        ServerSentEventUri=STREAM,
        Subscriptions=resource_link(SUBSCRIPTIONS),
        Actions={"#EventService.SubmitTestEvent": {"target": TEST_EVENT}},
    )


def subscriptions(view: ResourceView) -> Resource:
    """All subscriptions: destinations that the BMC posts to, and open event streams."""
    idents = [*view.state.get("subscriptions", {}), *view.listeners]
    return make_collection("EventDestination", "Subscriptions", [f"{SUBSCRIPTIONS}/{ident}" for ident in idents])


def subscription(view: ResourceView, ident: str) -> Resource:
    """One subscription."""
    if ident in view.listeners:
        return _destination(ident, "SSE", "Redfish", Destination=None)
    entry = view.state.get("subscriptions", {})[ident]
    protocol = entry.get("protocol", "Redfish")
    kind = "Syslog" if protocol in SYSLOG_PROTOCOLS else "RedfishEvent"
    place = {"Destination": entry["destination"], "Context": entry["context"]}
    return _destination(ident, kind, protocol, **place)


def _destination(ident: str, kind: str, protocol: str, **properties: Any) -> Resource:
    return make_resource(
        "EventDestination",
        "1_15_1",
        ident,
        "Subscription",
        Protocol=protocol,
        SubscriptionType=kind,
        EventFormatType="Event",
        Status=make_status(),
        **properties,
    )


def event_payload(event: dict[str, Any], context: str = "") -> Resource:
    """Return the Event document of one entry of the event log."""
    record = {
        "MemberId": "0",
        "EventId": event["id"],
        "EventType": "Alert",
        "EventTimestamp": event["at"],
        "Severity": event["severity"],
        "MessageSeverity": event["severity"],
        "Message": event["message"],
        "MessageId": event["message_id"],
        "OriginOfCondition": resource_link("/Systems/System_0"),
    }
    return {
        "@odata.type": "#Event.v1_11_0.Event",
        "Id": event["id"],
        "Name": "Event",
        "Context": context,
        "Events": [record],
    }
