"""New events on their way out: the server-sent stream, and calls to subscribers."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from assay.lab.bmc import outbound_http
from assay.lab.bmc.power_transitions import has_pending_changes
from assay.lab.bmc.redfish_errors import RedfishErrorResponse, not_found, not_in_list, state_conflict
from assay.lab.bmc.resource_tree import REDFISH_ROOT
from assay.lab.bmc.resources.event_service import SUBSCRIPTIONS, event_payload
from assay.lab.bmc.resources.service_root import RESOURCE_TREE
from assay.lab.bmc.responses import COMMON_HEADERS, no_content_answer, resource_answer
from assay.lab.bmc.virtual_bmc import BmcRequest, VirtualBmc, require_string
from assay.lab.node_state import with_sel_event
from assay.lab.world import VirtualNodeState

POLL_EVERY_S = 0.25
HEARTBEAT_EVERY_S = 5
EventKey = tuple[str, str]


async def new_events(machine: VirtualBmc, after: str | None = None) -> AsyncIterator[dict[str, Any]]:
    """Yield each event that is logged from now on (or after the event with id `after`), soon after it is there."""
    told, seen = _known(machine, after), None
    while True:
        state = seen if machine.is_silent() else await _latest(machine)
        if state is not None and state is not seen:
            for event in state.get("events", []):
                if _key(event) not in told:
                    yield event
            told, seen = {_key(event) for event in state.get("events", [])}, state
        await asyncio.sleep(POLL_EVERY_S)


def open_event_stream(machine: VirtualBmc, headers: Mapping[str, str]) -> Response:
    """Return the stream of ServerSentEventUri; comments keep it alive while nothing happens.

    While it is open it is one of the subscriptions. Raises a 406 for a client that takes no event stream.
    """
    if not {"*/*", "text/*", "text/event-stream"} & _media_types(headers.get("accept", "*/*")):
        raise RedfishErrorResponse(406, "HeaderInvalid", "This is a stream of text/event-stream", "Accept")
    ident = secrets.token_hex(4)

    async def messages() -> AsyncIterator[ServerSentEvent]:
        machine.listeners.add(ident)
        try:
            async for event in new_events(machine, headers.get("last-event-id")):
                yield ServerSentEvent(json.dumps(event_payload(event)), id=event["id"])
        finally:
            machine.listeners.discard(ident)

    return EventSourceResponse(messages(), headers=COMMON_HEADERS, ping=HEARTBEAT_EVERY_S)


async def deliver_events(machine: VirtualBmc) -> None:
    """Call every subscriber of this BMC with each new event, for ever. One that does not answer misses it."""
    async for event in new_events(machine):
        known = machine.stored_state().get("subscriptions", {})
        calls = [outbound_http.post_event(entry["destination"], _body(entry, event)) for entry in known.values()]
        await asyncio.gather(*calls, return_exceptions=True)


async def subscribe(call: BmcRequest) -> Response:
    """POST to Subscriptions."""
    names = {"Destination", "Context", "Protocol", "SubscriptionType", "EventFormatType", "EventTypes"}
    plain = await call.read_parameters(names, ("Destination", "Protocol"))
    for name, allowed in (("Protocol", "Redfish"), ("SubscriptionType", "RedfishEvent"), ("EventFormatType", "Event")):
        if plain.get(name, allowed) != allowed:
            raise not_in_list(plain[name], name)
    destination = require_string(plain, "Destination")
    if urlsplit(destination).scheme not in {"http", "https"}:
        raise not_in_list(destination, "Destination")
    ident = secrets.token_hex(4)
    entry = {"destination": destination, "context": str(plain.get("Context", ""))}
    await call.bmc.change(lambda state, _: {**state, "subscriptions": {**state.get("subscriptions", {}), ident: entry}})
    path = f"{REDFISH_ROOT}{SUBSCRIPTIONS}/{ident}"
    return resource_answer(RESOURCE_TREE.read(await call.bmc.view(), path), 201, Location=path)


async def unsubscribe(call: BmcRequest) -> Response:
    """DELETE a subscription."""
    if call.ids[0] in call.view.listeners:
        raise state_conflict("A stream ends when its listener closes it")
    if call.ids[0] not in call.view.state.get("subscriptions", {}):
        raise not_found(call.request.url.path)

    def without(state: dict[str, Any], _: object) -> dict[str, Any]:
        left = {name: entry for name, entry in state.get("subscriptions", {}).items() if name != call.ids[0]}
        return {**state, "subscriptions": left}

    await call.bmc.change(without)
    return no_content_answer()


async def submit_test_event(call: BmcRequest) -> Response:
    """EventService.SubmitTestEvent: log an event, so that it goes where events go."""
    names = {"Message", "MessageId", "MessageArgs", "Severity", "MessageSeverity", "EventId", "EventType"}
    plain = await call.read_parameters(names | {"EventTimestamp", "EventGroupId", "OriginOfCondition"}, ("MessageId",))
    words, message_id = str(plain.get("Message", "Test event")), require_string(plain, "MessageId")
    await call.bmc.change(lambda state, now: with_sel_event(state, now, "OK", words, message_id))
    return no_content_answer()


async def _latest(machine: VirtualBmc) -> VirtualNodeState:
    """Return the state, with what time has brought; the clock is only asked while something waits for it."""
    state = machine.stored_state()
    return (await machine.view()).state if has_pending_changes(state) else state


def _media_types(accept: str) -> set[str]:
    return {part.partition(";")[0].strip().lower() for part in accept.split(",")}


def _known(machine: VirtualBmc, after: str | None) -> set[EventKey]:
    keys = [_key(event) for event in machine.stored_state().get("events", [])]
    ids = [ident for ident, _ in keys]
    return set(keys[: ids.index(after) + 1] if after in ids else keys)


def _key(event: dict[str, Any]) -> EventKey:
    """An id may come again after the log was cleared; with its time it does not."""
    return event["id"], event["at"]


def _body(entry: dict[str, str], event: dict[str, Any]) -> bytes:
    return json.dumps(event_payload(event, entry["context"])).encode()
