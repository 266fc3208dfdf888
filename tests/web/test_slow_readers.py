"""Who reads nothing of what it asked for is closed by a deadline, and no agent waits meanwhile."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from site_of_agents import ROOT, Site
from starlette.requests import Request
from starlette.types import Message
from strangers import Caller, is_closed, trust
from web.access.asgi_calls import make_state

from assay.fleet.fleet_loader import load_fleet
from assay.web import bounded_stream
from assay.web.api.change_stream import ChangeStream
from assay.web.bounded_stream import BoundedStream
from assay.web.pages.page_routes import PageRoutes

SHORT = {"idle_seconds": 3, "header_seconds": 3}
PIPELINED = 200


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a site whose server waits three seconds for who reads nothing."""
    site = Site(tmp_path_factory.mktemp("brief"))
    site.limit(connections=SHORT)
    site.serve()
    yield site
    site.end()


def connect_narrowly(site: Site) -> ssl.SSLSocket:
    """Return a connection that has room for little that is unread."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", site.port))
    line.settimeout(60)
    return trust(site).wrap_socket(line, server_hostname="127.0.0.1")


def ask_much(line: ssl.SSLSocket, path: str) -> None:
    """Ask again and again, until nothing more is taken."""
    try:
        for _ in range(PIPELINED):
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    except OSError:
        return


def find_script(line: ssl.SSLSocket) -> str:
    line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    page = b""
    while not (found := re.search(rb'src="([^"]+)"', page)):
        more = line.recv(4096)
        assert more, page[:500]
        page += more
    return found[1].decode()


def test_who_reads_nothing_is_closed_and_no_agent_waits(brief: Site) -> None:
    script = find_script(connect_narrowly(brief))
    lines = [connect_narrowly(brief) for _ in range(4)]
    for line in lines:
        find_script(line)
        line.settimeout(0.5)
        ask_much(line, script)
    assert Caller(brief).post() == 200
    said = brief.fleet / ".assay/refusals.jsonl"
    brief.wait_for(lambda: said.exists() and "did not read its answer within 3 s" in said.read_text(), "it is told")
    brief.wait_for(lambda: all(map(is_closed, lines)), "those who read nothing are closed")
    assert Caller(brief).post() == 200


def test_a_visitor_must_end_its_headers(brief: Site) -> None:
    line = connect_narrowly(brief)
    find_script(line)
    line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    brief.wait_for(lambda: is_closed(line), "half a header is not waited for")


def test_a_stream_ends_after_its_time_even_if_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_stream, "STREAM_S", 0.05)
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
        await BoundedStream(events)({"type": "http", "asgi": {"spec_version": "2.4"}}, say_nothing, take_nothing)
        await events.aclose()

    asyncio.run(serve())
    assert ended == ["ended"]


@pytest.mark.parametrize("path", ["/live", "/api/v1/events"])
def test_every_stream_of_events_has_that_bound(path: str, tmp_path: Path) -> None:
    state = make_state(load_fleet(ROOT), tmp_path)
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path": path,
            "headers": [(b"host", b"127.0.0.1")],
            "query_string": b"",
            "client": ("127.0.0.1", 1),
            "scheme": "http",
            "server": ("127.0.0.1", 1),
        }
    )
    endpoint = {"/live": PageRoutes, "/api/v1/events": ChangeStream}[path](state).stream_changes
    assert isinstance(asyncio.run(endpoint(request)), BoundedStream)
