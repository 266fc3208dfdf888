"""The event service: who is told of new events, and the form in which they travel."""

from __future__ import annotations

from typing import Any

from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, status

PATH = "/EventService"
ALL = f"{PATH}/Subscriptions"
STREAM = f"{ROOT}{PATH}/SSE"
TEST_EVENT = f"{ROOT}{PATH}/Actions/EventService.SubmitTestEvent"


def event_service(_: View) -> Resource:
    """The event service."""
    return resource(
        "EventService",
        "1_10_3",
        "EventService",
        "Event service",
        ServiceEnabled=True,
        Status=status(),
        EventFormatTypes=["Event"],
        DeliveryRetryAttempts=0,
        ServerSentEventUri=STREAM,
        Subscriptions=link(ALL),
        Actions={"#EventService.SubmitTestEvent": {"target": TEST_EVENT}},
    )


def subscriptions(view: View) -> Resource:
    """Everyone whom this BMC calls with new events."""
    known = view.state.get("subscriptions", {})
    return collection("EventDestination", "Subscriptions", [f"{ALL}/{ident}" for ident in known])


def subscription(view: View, ident: str) -> Resource:
    """One subscriber."""
    entry = view.state.get("subscriptions", {})[ident]
    return resource(
        "EventDestination",
        "1_15_1",
        ident,
        "Subscription",
        Destination=entry["destination"],
        Context=entry["context"],
        Protocol="Redfish",
        SubscriptionType="RedfishEvent",
        EventFormatType="Event",
        Status=status(),
    )


def payload(event: dict[str, Any], context: str = "") -> Resource:
    """Return the Event document of one entry of the log."""
    record = {
        "MemberId": "0",
        "EventId": event["id"],
        "EventType": "Alert",
        "EventTimestamp": event["at"],
        "Severity": event["severity"],
        "MessageSeverity": event["severity"],
        "Message": event["message"],
        "MessageId": event["message_id"],
        "OriginOfCondition": link("/Systems/System_0"),
    }
    return {
        "@odata.type": "#Event.v1_11_0.Event",
        "Id": event["id"],
        "Name": "Event",
        "Context": context,
        "Events": [record],
    }
