"""Of a BMC's event log only what is new is read, once, in order, however the BMC keeps its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.adapters.bmc.logs import EventLogCursor
from assay.model.evidence import EvidenceDocument
from assay.observe.evidence_collector import MAX_KEPT_EVENTS, read_bmc_channel

ENTRIES = "/redfish/v1/Systems/Host/LogServices/SEL/Entries"
START = datetime(2026, 11, 20, 8, tzinfo=UTC)


class Log:
    """A log that pages by 20, and filters, skips or neither, oldest or newest first."""

    def __init__(self, tiny: Any, *, features: tuple[str, ...] = (), newest_first: bool = False) -> None:
        self.tiny, self.features, self.newest_first = tiny, features, newest_first
        self.entries: list[dict[str, Any]] = []
        self.sent = 0
        tiny.tree["/redfish/v1"]["ProtocolFeaturesSupported"] = dict.fromkeys(features, True)
        tiny.odd[ENTRIES] = self.answer

    def log(self, count: int, severity: str = "OK") -> None:
        for _ in range(count):
            number = len(self.entries) + 1
            at = (START + timedelta(minutes=number)).isoformat()
            entry = {"@odata.id": f"{ENTRIES}/{number}", "Id": str(number), "Created": at, "Severity": severity}
            self.entries.append({**entry, "Message": f"event {number}"})

    def answer(self, call: Any) -> None:
        query = parse_qs(urlsplit(call.path).query)
        found = self.entries[::-1] if self.newest_first else self.entries
        if "$filter" in query and "FilterQuery" in self.features:
            since = query["$filter"][0].split("'")[1]
            found = [entry for entry in found if entry["Created"] >= since]
        skip = int(query.get("$skip", ["0"])[0])
        top = int(query.get("$top", ["20"])[0])
        page = found[skip : skip + top]
        self.sent += len(page)
        body: dict[str, Any] = {"@odata.id": ENTRIES, "Members": page, "Members@odata.count": len(found)}
        if skip + top < len(found):
            body["Members@odata.nextLink"] = f"{ENTRIES}?$skip={skip + top}"
        self.tiny.whole(body)(call)


def read(tiny: Any, ca_file: Path, before: EvidenceDocument | None = None) -> EvidenceDocument:
    tree = read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), 5, before=before)
    return EvidenceDocument("n0042", START, {"bmc": tree})


def ids(evidence: EvidenceDocument) -> list[str]:
    return [event["id"] for event in evidence.read("bmc", "events").value]


WAYS = [
    pytest.param({"features": ("FilterQuery",)}, 30, id="filtered"),
    pytest.param({"features": ("TopSkipQuery",)}, 80, id="from the end"),
    pytest.param({"newest_first": True}, 25, id="newest first, until the cursor"),
    pytest.param({}, 210, id="all pages"),
]


@pytest.mark.parametrize(("how", "most"), WAYS)
def test_only_what_is_new_is_added_and_little_else_is_read(tiny: Any, ca_file: Path, how: Any, most: int) -> None:
    log = Log(tiny, **how)
    log.log(200)
    first = read(tiny, ca_file)
    log.log(3, "Critical")
    log.sent = 0
    second = read(tiny, ca_file, first)
    assert ids(first) == [str(number) for number in range(1, 201)]
    assert ids(second) == [str(number) for number in range(1, 204)]
    assert log.sent <= most
    assert second.read("bmc", "event_log", "critical").value == 3


@pytest.mark.parametrize(("how", "most"), WAYS)
def test_a_log_with_nothing_new_gives_nothing_new(tiny: Any, ca_file: Path, how: Any, most: int) -> None:
    log = Log(tiny, **how)
    log.log(45, "Warning")
    first = read(tiny, ca_file)
    again = read(tiny, ca_file, first)
    assert ids(again) == ids(first)
    assert again.read("bmc", "event_log") == first.read("bmc", "event_log")


@pytest.mark.parametrize(("how", "most"), WAYS)
def test_a_log_that_was_cleared_is_read_whole_and_the_counts_go_on(
    tiny: Any, ca_file: Path, how: Any, most: int
) -> None:
    log = Log(tiny, **how)
    log.log(30, "Critical")
    first = read(tiny, ca_file)
    log.entries.clear()
    log.log(2, "Critical")
    for place, entry in enumerate(log.entries):
        entry["Created"] = (START + timedelta(days=2, minutes=place)).isoformat()
    second = read(tiny, ca_file, first)
    assert ids(second)[-2:] == ["1", "2"]
    assert second.read("bmc", "event_log", "critical").value == 32


def test_a_filter_that_is_offered_and_refused_is_done_without(tiny: Any, ca_file: Path) -> None:
    log = Log(tiny, features=("FilterQuery",))
    log.log(5)
    first = read(tiny, ca_file)
    log.log(1)
    answer = log.answer
    tiny.odd[ENTRIES] = lambda call: (tiny.status(501) if "filter" in call.path else answer)(call)
    assert ids(read(tiny, ca_file, first)) == ["1", "2", "3", "4", "5", "6"]


def test_a_document_keeps_no_more_events_than_it_should(tiny: Any, ca_file: Path) -> None:
    log = Log(tiny)
    log.log(MAX_KEPT_EVENTS + 40)
    seen = read(tiny, ca_file)
    assert (len(ids(seen)), ids(seen)[-1]) == (MAX_KEPT_EVENTS, str(MAX_KEPT_EVENTS + 40))


@given(st.text(), st.text(alphabet="0123456789T:-+"), st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_cursor_is_read_back_as_it_was_written(ident: str, at: str, critical: int, warning: int) -> None:
    cursor = EventLogCursor(ident.replace("@", "") or "1", at, critical, warning)
    assert EventLogCursor.parse(str(cursor)) == cursor


@given(st.text())
def test_a_text_that_is_no_cursor_is_the_beginning(text: str) -> None:
    cursor = EventLogCursor.parse(text)
    assert cursor == EventLogCursor() or str(cursor).startswith(cursor.ident)
