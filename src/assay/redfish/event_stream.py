"""A BMC's server-sent events: each as soon as it is there, and none lost when the line breaks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from assay.model.node import Node
from assay.model.log_message import replace_unencodable
from assay.redfish.bmc import BmcClient, open_bmc
from assay.redfish.errors import BmcResourceMissing, BmcUnreachable
from assay.redfish.quirks import BmcQuirkSet
from assay.redfish.session import NO_QUIRKS

RECONNECT_PAUSE_S = 1.0
_LOGOUT_S = 2.0
IDLE_TIMEOUT_S = 60.0
"""A stream that says nothing for so long, not even a comment, is taken for broken."""

Event = dict[str, str]


def follow_event_stream(
    node: Node, *, root: Path = Path(), deadline_s: float, after: str = "", quirks: BmcQuirkSet = NO_QUIRKS
) -> Iterator[Event]:
    """Yield the events of a node's BMC as they come, until `deadline_s` real seconds have passed.

    Each is as in the channel `bmc`: id, at, severity, message, message_id. `after` is the id of the last event that was
    seen, from which a BMC that keeps them goes on; a line that breaks is taken up again in the same way.
    Raises Trouble where the BMC offers no events, or cannot be logged in to.
    """
    ends_at = time.monotonic() + deadline_s
    while (left := ends_at - time.monotonic()) > 0:
        try:
            with open_bmc(node, root=root, deadline_s=left + _LOGOUT_S, quirks=quirks) as bmc, bmc.deadline(left):
                for ident, event in _stream(bmc, after, left):
                    after = ident or after
                    yield event
        except BmcUnreachable:
            time.sleep(max(0.0, min(RECONNECT_PAUSE_S, ends_at - time.monotonic())))


def _stream(bmc: BmcClient, after: str, left: float) -> Iterator[tuple[str, Event]]:
    uri = bmc.follow(bmc.root, "EventService").get("ServerSentEventUri")
    if not uri:
        raise BmcResourceMissing("the BMC offers no server-sent events", where=bmc.where)
    with bmc.stream_lines(str(uri), {"Last-Event-ID": after} if after else {}, min(IDLE_TIMEOUT_S, left)) as lines:
        for ident, text in parse_server_sent_events(lines):
            for record in _records(text):
                yield ident, _event(record)


def parse_server_sent_events(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (id, data) of each event in the lines of an event stream (WHATWG HTML, server-sent events)."""
    ident, data = "", list[str]()
    for line in lines:
        if not line and data:
            yield ident, "\n".join(data)
            data = []
        field, _, content = line.partition(":")
        if field == "data":
            data.append(content.removeprefix(" "))
        elif field == "id":
            ident = content.removeprefix(" ")


def _records(text: str) -> list[dict[str, Any]]:
    """Return the records of an Event document; of anything else (a metric report, a broken line) none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    records = found.get("Events") if isinstance(found, dict) else None
    return [one for one in records if isinstance(one, dict)] if isinstance(records, list) else []


def _event(record: dict[str, Any]) -> Event:
    return {
        "id": replace_unencodable(record.get("EventId") or ""),
        "at": replace_unencodable(record.get("EventTimestamp") or ""),
        "severity": replace_unencodable(record.get("MessageSeverity") or record.get("Severity") or ""),
        "message": replace_unencodable(record.get("Message") or ""),
        "message_id": replace_unencodable(record.get("MessageId") or ""),
    }
