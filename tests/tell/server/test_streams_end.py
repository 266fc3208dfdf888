"""A stream of events ends after a time, even if its client reads nothing. Other slow readers: test_behind_nginx.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.types import Message

from assay.declare.loader import load_fleet
from assay.tell.api.conditional_answers import ChangeStream
from assay.tell.pages.page_routes import PageRoutes
from assay.tell.server import ledger_changes
from assay.tell.server.ledger_changes import EventStream
from tests.support.places import ROOT
from tests.tell.asgi_calls import READER, make_state


def test_a_stream_ends_after_its_time_even_if_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_changes, "STREAM_S", 0.05)
    ended = list[str]()

    async def tell() -> AsyncGenerator[str, None]:
        try:
            while True:
                yield "event: changed\n\n"
        finally:
            ended.append("ended")

    async def take_nothing(_: Message) -> None:
        await asyncio.Event().wait()

    async def say_nothing() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def serve() -> None:
        events = tell()
        await anext(events)
        stream = EventStream(events, lambda: ended.append("counted"))
        await stream({"type": "http", "asgi": {"spec_version": "2.4"}}, say_nothing, take_nothing)
        await events.aclose()

    asyncio.run(serve())
    assert sorted(ended) == ["counted", "ended"]


@pytest.mark.parametrize("path", ["/live", "/api/v1/events"])
def test_every_stream_of_events_has_that_bound(path: str, tmp_path: Path) -> None:
    state = make_state(load_fleet(ROOT), tmp_path)
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path": path,
            "headers": [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {READER}".encode())],
            "query_string": b"",
            "client": ("127.0.0.1", 1),
            "scheme": "http",
            "server": ("127.0.0.1", 1),
        }
    )
    endpoint = {"/live": PageRoutes, "/api/v1/events": ChangeStream}[path](state).stream_changes
    assert isinstance(asyncio.run(endpoint(request)), EventStream)
