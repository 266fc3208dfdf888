"""The services of a BMC as resources: sessions, accounts and roles, subscriptions, itself, and the logs.

They never contain passwords or tokens.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from assay.lab.bmc.authentication import ROLES, SESSION_TIMEOUT_S
from assay.lab.bmc.computer_system import SYSTEM_PATH
from assay.lab.bmc.power_transitions import BMC_RESET_TYPES
from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceView,
    make_collection,
    make_resource,
    make_status,
    resource_link,
    without_lacking,
)

ACCOUNT_SERVICE = "/AccountService"
ACCOUNTS = f"{ACCOUNT_SERVICE}/Accounts"
ALL_ROLES = f"{ACCOUNT_SERVICE}/Roles"
SESSION_SERVICE = "/SessionService"
SESSIONS = f"{SESSION_SERVICE}/Sessions"
EVENT_SERVICE = "/EventService"
SUBSCRIPTIONS = f"{EVENT_SERVICE}/Subscriptions"
SYSLOG_PROTOCOLS = ("SyslogTLS", "SyslogTCP", "SyslogUDP")
LOG_SERVICES_PATH = f"{SYSTEM_PATH}/LogServices"
SEL = f"{LOG_SERVICES_PATH}/SEL"
ENTRIES = f"{SEL}/Entries"
CONSOLE = f"{LOG_SERVICES_PATH}/HostLogger"
CONSOLE_ENTRIES = f"{CONSOLE}/Entries"
CLEAR_LOG = f"{REDFISH_ROOT}{SEL}/Actions/LogService.ClearLog"
MANAGER_PATH = "/Managers/BMC_0"
NETWORK_PROTOCOL = f"{MANAGER_PATH}/NetworkProtocol"
NTP_PLACES = 3
MANAGER_RESET = f"{REDFISH_ROOT}{MANAGER_PATH}/Actions/Manager.Reset"


def session_service(_: ResourceView) -> Resource:
    """The session service."""
    return make_resource(
        "SessionService.v1_1_9",
        "SessionService",
        "Session service",
        ServiceEnabled=True,
        SessionTimeout=SESSION_TIMEOUT_S,
        Status=make_status(),
        Sessions=resource_link(SESSIONS),
    )


def session(view: ResourceView, ident: str) -> Resource:
    """One login session."""
    return make_resource("Session.v1_7_2", ident, "Session", UserName=view.logins.live_sessions()[ident].account.user)


def account_service(_: ResourceView) -> Resource:
    """The account service."""
    return make_resource(
        "AccountService.v1_15_1",
        "AccountService",
        "Account service",
        ServiceEnabled=True,
        Status=make_status(),
        Accounts=resource_link(ACCOUNTS),
        Roles=resource_link(ALL_ROLES),
    )


def account(view: ResourceView, ident: str) -> Resource:
    """One user."""
    entry = view.logins.accounts[ident]
    return make_resource(
        "ManagerAccount.v1_12_1",
        ident,
        "Account",
        UserName=entry.user,
        Password=None,
        RoleId=entry.role,
        Enabled=entry.enabled,
        Locked=entry.locked,
        PasswordChangeRequired=entry.must_change,
        AccountTypes=["Redfish"],
        Links={"Role": resource_link(f"{ALL_ROLES}/{entry.role}")},
    )


def role(_: ResourceView, ident: str) -> Resource:
    """One role and its privileges."""
    privileges = ROLES[ident]
    return make_resource(
        "Role.v1_3_3", ident, ident, RoleId=ident, IsPredefined=True, AssignedPrivileges=privileges, OemPrivileges=[]
    )


def event_service(_: ResourceView) -> Resource:
    """The event service."""
    return make_resource(
        "EventService.v1_10_3",
        "EventService",
        "Event service",
        ServiceEnabled=True,
        Status=make_status(),
        EventFormatTypes=["Event"],
        DeliveryRetryAttempts=0,
        Subscriptions=resource_link(SUBSCRIPTIONS),
    )


def subscription(view: ResourceView, ident: str) -> Resource:
    """One subscription."""
    entry = view.state.get("subscriptions", {})[ident]
    protocol = entry.get("protocol", "Redfish")
    return make_resource(
        "EventDestination.v1_15_1",
        ident,
        "Subscription",
        Destination=entry["destination"],
        Context=entry["context"],
        Protocol=protocol,
        SubscriptionType="Syslog" if protocol in SYSLOG_PROTOCOLS else "RedfishEvent",
        EventFormatType="Event",
        Status=make_status(),
    )


def log_services(view: ResourceView) -> Resource:
    """The log services: the system event log, and the console's log once the machine has shown something there."""
    return make_collection("LogService", "Log services", [SEL, *([CONSOLE] if view.state.get("console") else [])])


def sel(view: ResourceView) -> Resource:
    """The system event log."""
    return make_resource(
        "LogService.v1_5_2",
        "SEL",
        "System event log",
        ServiceEnabled=True,
        LogEntryType="Event",
        OverWritePolicy="WrapsWhenFull",
        DateTime=view.now.isoformat(timespec="seconds"),
        Status=make_status(),
        Entries=resource_link(ENTRIES),
        Actions={"#LogService.ClearLog": {"target": CLEAR_LOG}},
    )


def log_entries(view: ResourceView) -> Resource:
    """All entries, oldest first, in full, as the specification requires of log entries."""
    events = view.state.get("events", [])
    collection = make_collection("LogEntry", "Log entries", ())
    members = [{"@odata.id": f"{REDFISH_ROOT}{ENTRIES}/{event['id']}", **_log_entry_body(event)} for event in events]
    return {**collection, "Members": members, "Members@odata.count": len(members)}


def log_entry(view: ResourceView, ident: str) -> Resource:
    """One entry."""
    return _log_entry_body(next(event for event in view.state.get("events", []) if event["id"] == ident))


def _log_entry_body(event: dict[str, Any]) -> Resource:
    return make_resource(
        "LogEntry.v1_16_2",
        event["id"],
        f"Event {event['id']}",
        EntryType="Event",
        Created=event["at"],
        Severity=event["severity"],
        Message=event["message"],
        MessageId=event["message_id"],
    )


def console(_: ResourceView) -> Resource:
    """The log of the serial console, as OpenBMC has it."""
    return make_resource(
        "LogService.v1_5_2",
        "HostLogger",
        "Host Logger Service",
        ServiceEnabled=True,
        LogEntryType="OEM",
        OverWritePolicy="WrapsWhenFull",
        Status=make_status(),
        Entries=resource_link(CONSOLE_ENTRIES),
    )


def console_entries(view: ResourceView) -> Resource:
    """All lines of the console, oldest first."""
    collection = make_collection("LogEntry", "Host Logger Entries", ())
    count = len(view.state.get("console", []))
    members = [
        {"@odata.id": f"{REDFISH_ROOT}{CONSOLE_ENTRIES}/{number}", **console_entry(view, str(number))}
        for number in range(count)
    ]
    return {**collection, "Members": members, "Members@odata.count": count}


def console_entry(view: ResourceView, ident: str) -> Resource:
    """One line."""
    return make_resource(
        "LogEntry.v1_16_2",
        ident,
        "Host Logger Entry",
        EntryType="Oem",
        OemRecordFormat="Host Logger Entry",
        Severity="OK",
        Message=view.state["console"][int(ident)],
    )


def manager(view: ResourceView) -> Resource:
    """The BMC: version, time, and the time of its last reset, if known."""
    reset_at = view.state.get("bmc", {}).get("reset_at")
    return make_resource(
        "Manager.v1_19_0",
        "BMC_0",
        "BMC",
        ManagerType="BMC",
        FirmwareVersion=view.state["firmware"].get("BMC", ""),
        UUID=service_uuid(view),
        ServiceEntryPointUUID=service_uuid(view),
        DateTime=bmc_time(view),
        DateTimeLocalOffset="+00:00",
        **({"LastResetTime": reset_at} if reset_at else {}),
        PowerState="On",
        Status=make_status(),
        LogServices=resource_link("/Systems/System_0/LogServices"),
        NetworkProtocol=resource_link(NETWORK_PROTOCOL),
        Links={
            "ManagerForServers": [resource_link("/Systems/System_0")],
            "ManagerForChassis": [resource_link("/Chassis/Chassis_0")],
        },
        Actions={
            "#Manager.Reset": {"target": MANAGER_RESET, "ResetType@Redfish.AllowableValues": list(BMC_RESET_TYPES)},
        },
    )


def network_protocol(view: ResourceView) -> Resource:
    """The network protocols of the BMC: HTTPS, IPMI over LAN, and NTP as a client."""
    ntp = view.state["box"]["ntp"]
    return make_resource(
        "ManagerNetworkProtocol.v1_10_0",
        "NetworkProtocol",
        "Network protocols",
        HostName=f"{view.node}-bmc",
        FQDN=None,
        HTTP={"ProtocolEnabled": False},
        HTTPS={"ProtocolEnabled": True},
        SSDP={"ProtocolEnabled": False},
        **without_lacking(
            view,
            IPMI={"ProtocolEnabled": view.state["box"].get("ipmi", False), "Port": 623},
            NTP={
                "ProtocolEnabled": ntp["enabled"],
                "Port": 123,
                "NTPServers": list(ntp["servers"]),
                "NetworkSuppliedServers": [],
            },
        ),
        Status=make_status(),
    )


def service_uuid(view: ResourceView) -> str:
    """Return the UUID of this Redfish service, derived from the names of node and machine."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{view.node}.{view.state['serial']}.bmc"))


def bmc_time(view: ResourceView) -> str:
    """Return the BMC's time, with the error of its clock."""
    return (view.now + timedelta(seconds=view.state["box"]["clock_s"])).isoformat(timespec="seconds")
