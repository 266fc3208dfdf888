"""Nothing that a device or a tenant said reaches another service or a mail with control or invisible characters."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.adapters.tickets.sink import SinkHttpClient
from assay.model.ticket import TicketEvent, TicketRecord
from assay.tell.messages.digest import Digest, DigestItem
from assay.tell.messages.people_channel import PeopleChannel
from tests.support.ticket_room import ticket
from tests.support.ticket_sinks import Request, Service

HOSTILE = "\x1b]0;owned\x07\x1b[2K\x9b1A\u202egnol\u2066\u2028\r\nFORGED n0001 is healthy\x00"
TEXTS = st.text() | st.sampled_from([HOSTILE])
DOCUMENTS = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


class Keeper(Service):
    """A service that takes everything."""

    def answer(self, request: Request) -> tuple[int, Any]:
        return 202, None


@pytest.fixture(scope="module")
def keeper() -> Iterator[Keeper]:
    with Keeper().up() as service:
        yield service


def list_texts(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        yield from document
        for part in document.values():
            yield from list_texts(part)
    elif isinstance(document, list):
        for part in document:
            yield from list_texts(part)
    elif isinstance(document, str):
        yield document


def assert_printable(text: str) -> None:
    bad = {hex(ord(one)) for one in text if ord(one) < 32 and one not in "\n\t"} | set("\x9b\u202e\u2066\u2028") & set(
        text
    )
    assert not bad


@settings(max_examples=40, deadline=None)
@given(body=DOCUMENTS)
def test_whatever_is_sent_to_a_service_is_printable(keeper, body):
    SinkHttpClient(keeper.url, "here", lambda request: request).request("POST", "/in", {"what": body})
    for text in list_texts(keeper.requests[-1].body):
        assert_printable(text)


def test_a_message_to_people_is_printable_and_no_line_of_it_is_forged(keeper, monkeypatch):
    hostile = TicketRecord(ticket(key=HOSTILE, seen=HOSTILE), "2026-11-21T12:00:00+00:00")
    event = TicketEvent("2026-11-21T12:00:00+00:00", "opened", HOSTILE)
    url = keeper.url.replace("http", "json")
    PeopleChannel(None, SimpleNamespace(where="here", secret=url)).announce(
        Digest("d1", "people", (DigestItem(hostile, event),))
    )
    for text in list_texts(keeper.requests[-1].body):
        assert_printable(text)
        assert not [line for line in text.splitlines() if line.startswith("FORGED")]
