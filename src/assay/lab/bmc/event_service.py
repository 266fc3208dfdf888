"""The event service as resources: subscriptions, and the payload of a delivered event."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.resource_tree import (
    REDFISH_ROOT,
    Resource,
    ResourceView,
    make_collection,
    make_resource,
    make_status,
    resource_link,
)

EVENT_SERVICE = "/EventService"
SUBSCRIPTIONS = f"{EVENT_SERVICE}/Subscriptions"
SYSLOG_PROTOCOLS = ("SyslogTLS", "SyslogTCP", "SyslogUDP")
STREAM = f"{REDFISH_ROOT}{EVENT_SERVICE}/SSE"
TEST_EVENT = f"{REDFISH_ROOT}{EVENT_SERVICE}/Actions/EventService.SubmitTestEvent"


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
