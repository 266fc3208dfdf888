"""The BMC as an HTTP client that fetches images and posts events, always directly, never through a proxy.

New events go to subscribers by POST, and to open server-sent event streams.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from assay.lab.bmc.authentication import RedfishErrorResponse, not_found, not_in_list, state_conflict
from assay.lab.bmc.odata_responses import COMMON_HEADERS, no_content_answer, resource_answer
from assay.lab.bmc.power_transitions import has_pending_changes
from assay.lab.bmc.resource_tree import REDFISH_ROOT
from assay.lab.bmc.service_root import RESOURCE_TREE
from assay.lab.bmc.services import SUBSCRIPTIONS, SYSLOG_PROTOCOLS, event_payload
from assay.lab.bmc.virtual_bmc import BmcRequest, VirtualBmc, require_string
from assay.lab.virtual_node_state import VirtualNodeState, with_sel_event

FETCH_DEADLINE_S = 10.0
POST_DEADLINE_S = 5.0

# Separate pools: a fetch that hangs must not delay changes of state, and a subscriber must not delay fetches.
_FETCHERS = ThreadPoolExecutor(32, thread_name_prefix="bmc-fetch")
_CALLERS = ThreadPoolExecutor(8, thread_name_prefix="bmc-call")
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
POLL_EVERY_S = 0.25
HEARTBEAT_EVERY_S = 5
EventKey = tuple[str, str]


class OutboundCallFailed(Exception):
    """The other side failed; the text is the reason."""


async def fetch_image(uri: str, limit: int) -> bytes:
    """GET an http or https URI. Raises OutboundCallFailed, also for more than `limit` bytes."""
    return await asyncio.get_running_loop().run_in_executor(_FETCHERS, _fetch, uri, limit)


async def post_event(uri: str, body: bytes) -> None:
    """POST a JSON document to an http or https URI. Raises OutboundCallFailed."""
    await asyncio.get_running_loop().run_in_executor(_CALLERS, _call, uri, body)


def _fetch(uri: str, limit: int) -> bytes:
    try:
        with _DIRECT.open(uri, timeout=FETCH_DEADLINE_S) as answer:
            content: bytes = answer.read(limit + 1)
    except (OSError, HTTPException, ValueError) as error:
        raise OutboundCallFailed(f"{type(error).__name__}: {error}") from None
    if len(content) > limit:
        raise OutboundCallFailed(f"it is larger than {limit} bytes")
    return content


def _call(uri: str, body: bytes) -> None:
    request = urllib.request.Request(  # noqa: S310 — subscriptions are http or https only
        uri, body, {"Content-Type": "application/json"}, method="POST"
    )
    try:
        _DIRECT.open(request, timeout=POST_DEADLINE_S).close()
    except (OSError, HTTPException, ValueError) as error:
        raise OutboundCallFailed(f"{type(error).__name__}: {error}") from None


async def watch_states(machines: Sequence[VirtualBmc]) -> None:
    """Say it to each BMC when its state has changed or may change with time, until cancelled.

    One task looks at all: a task for each would take most of the CPU time of a lab that does nothing.
    """
    seen: dict[str, VirtualNodeState] = {}
    while True:
        for machine in machines:
            with suppress(OSError, ValueError):  # it is looked at again
                state = machine.stored_state()
                if state is not seen.get(machine.node) or has_pending_changes(state):
                    seen[machine.node] = state
                    machine.may_have_changed.set()
        await asyncio.sleep(POLL_EVERY_S)


async def new_events(
    machine: VirtualBmc, after: str | None = None, pause: Callable[[], Awaitable[Any]] | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield each event logged from now on, or since the event with id `after`, at most `POLL_EVERY_S` late.

    `pause` waits until it is worth to look again; without it, that is `POLL_EVERY_S`.
    """
    keys = [_key(event) for event in machine.stored_state().get("events", [])]
    ids = [ident for ident, _ in keys]
    delivered = set(keys[: ids.index(after) + 1] if after in ids else keys)
    last = None
    while True:
        if not machine.is_silent():
            state = machine.stored_state()
            if has_pending_changes(state):  # time alone can change it: only then the clock is read
                state = (await machine.view()).state
            if state is not last:
                for event in state.get("events", []):
                    if _key(event) not in delivered:
                        yield event
                delivered = {_key(event) for event in state.get("events", [])}
                last = state
        await (pause() if pause else asyncio.sleep(POLL_EVERY_S))


def open_event_stream(machine: VirtualBmc, headers: Mapping[str, str]) -> Response:
    """Return the stream of ServerSentEventUri; comments keep it alive.

    An open stream is listed as a subscription. Raises a 406 for a client that does not accept an event stream.
    """
    accepted = {part.partition(";")[0].strip().lower() for part in headers.get("accept", "*/*").split(",")}
    if not {"*/*", "text/*", "text/event-stream"} & accepted:
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
    """Send each new event to every subscriber of this BMC, until cancelled. There is one attempt an event.

    Needs `watch_states` beside it.
    """

    async def changed() -> None:
        await machine.may_have_changed.wait()
        machine.may_have_changed.clear()

    async for event in new_events(machine, pause=changed):
        calls = []
        for entry in machine.stored_state().get("subscriptions", {}).values():
            if entry.get("protocol", "Redfish") != "Redfish":  # the lab sends no syslog
                continue
            body = json.dumps(event_payload(event, entry["context"])).encode()
            calls.append(post_event(entry["destination"], body))
        await asyncio.gather(*calls, return_exceptions=True)


async def subscribe(call: BmcRequest) -> Response:
    """POST to Subscriptions."""
    names = {"Destination", "Context", "Protocol", "SubscriptionType", "EventFormatType", "EventTypes"}
    plain = await call.read_parameters(names, ("Destination", "Protocol"))
    lacks_syslog = "Syslog" in call.view.state["box"]["lacks"]
    is_syslog = plain["Protocol"] in SYSLOG_PROTOCOLS and not lacks_syslog
    kind, protocol = ("Syslog", plain["Protocol"]) if is_syslog else ("RedfishEvent", "Redfish")
    for name, allowed in (("Protocol", protocol), ("SubscriptionType", kind), ("EventFormatType", "Event")):
        if plain.get(name, allowed) != allowed:
            raise not_in_list(plain[name], name)
    destination = require_string(plain, "Destination")
    if urlsplit(destination).scheme not in ({"syslog"} if is_syslog else {"http", "https"}):
        raise not_in_list(destination, "Destination")
    ident = secrets.token_hex(4)
    entry = {"destination": destination, "context": str(plain.get("Context", "")), "protocol": protocol}
    await call.bmc.change(lambda state, _: {**state, "subscriptions": {**state.get("subscriptions", {}), ident: entry}})
    path = f"{REDFISH_ROOT}{SUBSCRIPTIONS}/{ident}"
    return resource_answer(RESOURCE_TREE.read(await call.bmc.view(), path), 201, Location=path)


async def unsubscribe(call: BmcRequest) -> Response:
    """DELETE a subscription."""
    if call.ids[0] in call.view.listeners:
        raise state_conflict("Only the client can end an event stream")
    if call.ids[0] not in call.view.state.get("subscriptions", {}):
        raise not_found(call.request.url.path)

    def without(state: dict[str, Any], _: object) -> dict[str, Any]:
        left = {name: entry for name, entry in state.get("subscriptions", {}).items() if name != call.ids[0]}
        return {**state, "subscriptions": left}

    await call.bmc.change(without)
    return no_content_answer()


async def submit_test_event(call: BmcRequest) -> Response:
    """EventService.SubmitTestEvent: log an event; it is delivered like any other."""
    names = {"Message", "MessageId", "MessageArgs", "Severity", "MessageSeverity", "EventId", "EventType"}
    plain = await call.read_parameters(names | {"EventTimestamp", "EventGroupId", "OriginOfCondition"}, ("MessageId",))
    text = str(plain.get("Message", "Test event"))
    message_id = require_string(plain, "MessageId")
    await call.bmc.change(lambda state, now: with_sel_event(state, now, "OK", text, message_id))
    return no_content_answer()


def _key(event: dict[str, Any]) -> EventKey:
    """Return id and time: together they are unique, also after the log was cleared."""
    return event["id"], event["at"]
