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
    """Everyone who is told of new events: whom the BMC calls, and who holds a stream open."""
    known = [*view.state.get("subscriptions", {}), *view.listeners]
    return collection("EventDestination", "Subscriptions", [f"{ALL}/{ident}" for ident in known])


def subscription(view: View, ident: str) -> Resource:
    """One subscriber."""
    if ident in view.listeners:
        return _destination(ident, "SSE", Destination=None)
    entry = view.state.get("subscriptions", {})[ident]
    return _destination(ident, "RedfishEvent", Destination=entry["destination"], Context=entry["context"])


def _destination(ident: str, kind: str, **properties: Any) -> Resource:
    return resource(
        "EventDestination",
        "1_15_1",
        ident,
        "Subscription",
        Protocol="Redfish",
        SubscriptionType=kind,
        EventFormatType="Event",
        Status=status(),
        **properties,
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
