"""A BMC's event log in a file: a Redfish collection of LogEntry with its members, as JSON. The branch `bmc.events`."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from assay.model.reading import value
from assay.observe.bmc_log import event_of
from assay.observe.logs.entries import entries_in
from assay.observe.recorded.events import branches
from assay.observe.recorded.form import Branches, Form, NotThis


def _shows(content: bytes) -> bool:
    return content.lstrip()[:1] in (b"{", b"[") and b"LogEntry" in content and b"Created" in content


def _read(content: bytes, _at: datetime) -> Branches:
    entries = _entries(content)
    if not all(isinstance(entry, dict) for entry in entries):
        raise NotThis("its members are no entries; ask for them with $expand")
    if bare := sum(set(entry) == {"@odata.id"} for entry in entries):
        raise NotThis(f"{bare} of its members are only links; ask for them with $expand")
    dated = [entry for entry in entries if _is_time(entry.get("Created"))]
    undated = len(entries) - len(dated)
    return {**branches([event_of(entry) for entry in dated]), ("bmc", "undated_events"): value(undated)}


def _entries(content: bytes) -> list[Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise NotThis("no JSON") from None
    members = entries_in(document)
    if members is None:
        raise NotThis("a collection has Members")
    if isinstance(document, dict) and "Members@odata.nextLink" in document:
        raise NotThis("it is one page of several; put the Members of all into one list")
    return members


def _is_time(text: Any) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


REDFISH_LOG = Form("Redfish log entries", _shows, _read)
