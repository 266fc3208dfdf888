"""Visitors over HTTPS: one takes nothing from another, and what has ended ends its open streams."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from starlette.exceptions import HTTPException

from assay.tell.server.ledger_changes import STREAM_S
from assay.tell.server.visitor_shares import MAX_STREAMS, MAX_WAITING, VisitorShares
from tests.support.site_of_agents import PATIENCE_S, Site, digest
from tests.tell.server.strangers import shake_hands, trust

RIGHTS: dict[str, dict[str, Any]] = {
    "ann": {"role": "operator"},
    "acme": {"role": "customer", "pools": ["h100-a"]},
    "without-token": {"role": "viewer"},
    "without-role": {"role": "viewer"},
    "without-pool": {"role": "customer", "pools": ["h100-a"]},
    "logged-out": {"role": "viewer"},
}
ENDED = [name for name in RIGHTS if name.startswith(("without", "logged"))]
STREAMS = ("/live?after=999999", "/api/v1/events?after=999999")
REQUESTS = 200


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a site with visitors. Its policy is a file of its own, without `access`."""
    site = Site(tmp_path_factory.mktemp("visited"))
    (site.home / "policy.yaml").write_text((site.fleet / "specs/lifecycle/default.yaml").read_text())
    declare(site, RIGHTS)
    site.serve()
    yield site
    site.end()


def declare(site: Site, rights: Mapping[str, Mapping[str, Any]]) -> None:
    visitors = {name: {**each, "token": {"sha256": digest(f"token of {name}")}} for name, each in rights.items()}
    access = json.dumps({"visitors": visitors})
    (site.fleet / "specs/lifecycle/default.yaml").write_text(
        f"{(site.home / 'policy.yaml').read_text()}\naccess: {access}\n"
    )


def show(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer token of {name}"}


class Answer(NamedTuple):
    """The answer to a request on a connection of its own."""

    status: int
    headers: Mapping[str, str]
    text: str


def ask(site: Site, method: str, path: str, headers: Mapping[str, str], body: str = "") -> Answer:
    line = http.client.HTTPSConnection("127.0.0.1", site.port, timeout=PATIENCE_S, context=trust(site))
    with contextlib.closing(line):
        line.request(method, path, body, dict(headers))
        answer = line.getresponse()
        return Answer(answer.status, answer.headers, answer.read().decode())


async def go_on_asking(
    site: Site, path: str, headers: Mapping[str, str], answers: Counter[int], over: asyncio.Event
) -> None:
    """Ask again and again on one connection until it is over, and count the answers by status; hold a stream open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=trust(site))
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    while not over.is_set():
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        answers[int(head.split()[1])] += 1
        if "text/event-stream" in head:
            await over.wait()
        elif "content-length: " in head:
            await reader.readexactly(int(head.partition("content-length: ")[2].split()[0]))
    writer.close()


def test_hundreds_of_requests_and_streams_of_a_customer_take_nothing_from_an_operator(visited: Site) -> None:
    streams, requests, ours = Counter[int](), Counter[int](), Counter[int]()

    async def flood() -> None:
        over = asyncio.Event()
        asked = [(path, streams) for path in STREAMS * (2 * MAX_STREAMS)]
        asked += [(f"/api/v1/nodes?limit={1 + n % 9}", requests) for n in range(REQUESTS)]
        crowd = [asyncio.create_task(go_on_asking(visited, path, show("acme"), count, over)) for path, count in asked]
        while streams[200] < MAX_STREAMS or not requests[429]:
            await asyncio.sleep(0.1)
        crowd.append(asyncio.create_task(go_on_asking(visited, STREAMS[0], show("ann"), ours, over)))
        for path in (
            "/api/v1/nodes",
            "/",
            "/api/v1/tickets",
            "/nodes/n0003",
            "/api/v1/changes?after=0",
            "/api/v1/pools",
        ):
            ours[(await asyncio.to_thread(ask, visited, "GET", path, show("ann"))).status] += 1
        assert streams[200] == MAX_STREAMS, "a customer has its share of streams"
        over.set()
        await asyncio.gather(*crowd)

    asyncio.run(flood())
    assert {*ours} == {200}
    assert {*streams} == {*requests} == {200, 429}, "who asks for more than a share is told so, and goes on with it"


def begin(site: Site, path: str, headers: Mapping[str, str]) -> ssl.SSLSocket:
    """Return the connection of a stream that has begun."""
    line = shake_hands(site)
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{lines}\r\n".encode())
    assert line.recv(12).endswith(b" 200")
    return line


def hear(line: ssl.SSLSocket) -> bytes:
    """Return what a stream says until the server ends it; that takes seconds, and not the time that each may last."""
    said, ends_at = b"", time.monotonic() + min(PATIENCE_S, STREAM_S / 2)
    while piece := line.recv(4096):
        said += piece
        assert time.monotonic() < ends_at, "the stream goes on"
    return said


def test_logout_revoked_token_role_and_pool_end_open_streams_before_they_tell_more(visited: Site) -> None:
    form = {"Sec-Fetch-Site": "same-origin"}
    login = ask(visited, "POST", "/login", form, "token=token of logged-out")
    cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
    shown = {name: cookie if name == "logged-out" else show(name) for name in RIGHTS}
    position = json.loads(ask(visited, "GET", "/api/v1/nodes/n0003", show("ann")).text)["position"]
    paths = (f"/live?after={position}", f"/api/v1/events?after={position}")
    streams = {(name, path): begin(visited, path, shown[name]) for name in (*ENDED, "ann") for path in paths}

    assert ask(visited, "POST", "/logout", {**cookie, **form}).status == 303
    left = {name: rights for name, rights in RIGHTS.items() if name != "without-token"}
    changed = {"without-role": {"role": "technician"}, "without-pool": {"role": "customer", "pools": ["byo-b"]}}
    declare(visited, {**left, **changed})
    for name in ("without-token", "logged-out"):
        visited.wait_for(lambda name=name: ask(visited, "GET", "/api/v1/nodes", shown[name]).status == 401, name)
    order = json.dumps({"order": "hold", "reason": "nobody else's business", "after": position})
    assert ask(visited, "POST", "/api/v1/nodes/n0003/orders", show("ann"), order).status == 200
    said = {key: hear(line) for key, line in streams.items() if key[0] != "ann"}
    assert all(b"retry: 3000" in text for text in said.values())
    assert not any(b"event: change" in text for text in said.values())
    heard = b""
    while b"business" not in heard:
        piece = streams["ann", paths[1]].recv(4096)
        assert piece, "who may still read, reads on"
        heard += piece


def test_a_visitor_has_so_many_streams_whatever_others_have() -> None:
    shares = VisitorShares()
    ends = [shares.begin_stream("acme") for _ in range(MAX_STREAMS)]
    with pytest.raises(HTTPException, match="acme follows the ledger 16 times already") as refused:
        shares.begin_stream("acme")
    assert refused.value.status_code == 429
    ends.pop()()
    ends.append(shares.begin_stream("acme"))
    for number in range(1000):
        shares.begin_stream(f"c{number}")
    shares.begin_stream("ann")


def test_requests_of_one_visitor_wait_for_each_other_and_for_nobody_else() -> None:
    async def crowd() -> None:
        shares, done = VisitorShares(), list[str]()
        over = asyncio.Event()

        async def work(name: str) -> None:
            async with shares.take_turn(name):
                if name == "acme":
                    await over.wait()
                done.append(name)

        waiting = [asyncio.create_task(work("acme")) for _ in range(MAX_WAITING + 1)]
        await asyncio.sleep(0)
        with pytest.raises(HTTPException, match="acme has 32 requests waiting already"):
            shares.take_turn("acme")
        await work("ann")
        assert done == ["ann"]
        over.set()
        await asyncio.gather(*waiting)
        assert len(done) == MAX_WAITING + 2

    asyncio.run(crowd())
