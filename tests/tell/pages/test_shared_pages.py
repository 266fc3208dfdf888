"""One render serves all who asked before it began and have the same rights; a compressed page has a tag of its own."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import math
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.requests import Request

from assay.act.loop.enrollment import enroll_nodes
from assay.declare.loader import load_fleet
from assay.tell.pages.page_routes import SharedPage, SharedPages, accepts_gzip
from tests.support.places import ROOT
from tests.tell.asgi_calls import Caller, let_in, make_state
from tests.tell.fleet_with_history import make_fleet_with_history
from tests.tell.pages.test_pages import serve_pages

ROLES = {"ann": "viewer", "bob": "viewer", "tom": "operator", "acme": "customer", "byo": "customer"}
POOLS = {"acme": ["byo-b"], "byo": ["h100-a"]}


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """Return a caller of pages that several visitors may read."""
    root = tmp_path_factory.mktemp("fleet")
    visitors: dict[str, Any] = {
        name: {"role": role, "pools": POOLS.get(name, []), "token": {"sha256": hashlib.sha256(token(name)).hexdigest()}}
        for name, role in ROLES.items()
    }
    return serve_pages(make_state(let_in(make_fleet_with_history(root), {"visitors": visitors}), root / ".assay"))


def token(name: str) -> bytes:
    return f"token-of-{name}".encode()


def read(caller: Caller, name: str, path: str, **headers: str) -> Any:
    return caller.get(path, authorization=f"Bearer {token(name).decode()}", **headers)


def test_visitors_with_the_same_rights_share_a_page_and_others_do_not(caller: Caller) -> None:
    for path, names in (("/nodes/n0004", ("ann", "tom")), ("/customer", ("ann", "acme", "byo"))):
        tags = [{name: read(caller, name, path).headers["etag"] for name in ("bob", *names)} for _ in range(2)]
        assert any(one["ann"] == one["bob"] for one in tags), "a minute may go by once"
        assert all(len({one[name] for name in names}) == len(names) for one in tags)
    forms = {name: b'id="orders"' in read(caller, name, "/nodes/n0004").body for name in ("ann", "tom")}
    assert forms == {"ann": False, "tom": True}


def test_a_compressed_page_is_the_same_page_with_another_tag(caller: Caller) -> None:
    plain, small = read(caller, "ann", "/tickets"), read(caller, "ann", "/tickets", accept_encoding="br, gzip")
    assert small.headers["content-encoding"] == "gzip"
    assert {plain.headers["vary"], small.headers["vary"]} == {"Accept-Encoding"}
    assert len(small.body) < len(plain.body)
    assert small.headers["etag"] != plain.headers["etag"]
    again = read(caller, "ann", "/tickets", accept_encoding="gzip", if_none_match=small.headers["etag"])
    assert again.status == 304 or again.headers["etag"] != small.headers["etag"]  # a minute may go by


def test_a_page_is_packed_whole() -> None:
    page = SharedPage.pack("t", "ü" * 5000)
    assert gzip.decompress(page.small) == page.body == ("ü" * 5000).encode()
    assert SharedPage.pack("t", "short").small == b""


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("gzip; q=0.0", False), ("br", False), ("", False)],
)
def test_only_who_takes_gzip_gets_it(accepted: str, takes: bool) -> None:
    assert accepts_gzip(accepted) is takes


@pytest.mark.parametrize("is_changed", [False, True])
def test_however_many_ask_there_are_few_renders_and_none_is_older_than_the_question(is_changed: bool) -> None:
    pages, may_end, began = SharedPages(), Event(), list[int]()

    def name() -> str:
        return f"entry {len(began) * is_changed}"

    def work(tag: str) -> SharedPage:
        page = SharedPage(tag, b"")
        began.append(len(began))
        may_end.wait(60)
        return page

    async def ask() -> tuple[list[SharedPage | None], list[SharedPage | None]]:
        first = asyncio.gather(*(pages.render(("/",), name, work) for _ in range(100)))
        while not began:
            await asyncio.sleep(0.01)
        later = asyncio.gather(*(pages.render(("/",), name, work) for _ in range(100)))
        await asyncio.sleep(0.05)
        assert len(began) == 1, "one render of a page runs at a time"
        may_end.set()
        return await first, await later

    first, later = asyncio.run(ask())
    assert len(first) == len(later) == 100
    assert (first[0] is not later[0], len({*map(id, first)}), len({*map(id, later)})) == (is_changed, 1, 1)
    assert len(began) == 1 + is_changed


@pytest.mark.parametrize(("known_since", "gets"), [(0.0, "before"), (math.inf, "after")])
def test_a_kept_page_that_is_new_enough_is_there_at_once_and_is_rendered_for_the_next_reader(
    known_since: float, gets: str
) -> None:
    pages, may_end = SharedPages(), Event()

    def work(tag: str) -> SharedPage:
        may_end.wait(60)
        return SharedPage(tag, b"")

    async def ask() -> tuple[SharedPage | None, SharedPage | None, bool]:
        await pages.render(("/",), lambda: "before", partial(SharedPage, body=b""))
        asked = asyncio.create_task(pages.render(("/",), lambda: "after", work, known_since=known_since))
        await asyncio.wait([asked], timeout=0.5 if known_since else 30)
        is_there = asked.done()
        may_end.set()
        return await asked, await pages.render(("/",), lambda: "after", work), is_there

    asked, at_last, is_there = asyncio.run(ask())
    assert (asked, is_there) == (SharedPage(gets, b""), not known_since)
    assert at_last == SharedPage("after", b""), "the render that nobody waited for is kept"


def test_a_reader_that_leaves_ends_no_render_of_others() -> None:
    pages, may_end = SharedPages(), Event()

    def work(_tag: str) -> SharedPage:
        may_end.wait(60)
        return SharedPage("whole", b"")

    async def leave() -> SharedPage | None:
        gone, stays = (asyncio.create_task(pages.render(("/",), str, work)) for _ in range(2))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.wait([gone])
        may_end.set()
        return await stays

    assert asyncio.run(leave()) == SharedPage("whole", b"")


def test_a_failure_reaches_all_who_asked() -> None:
    def work(_tag: str) -> SharedPage:
        raise OSError("gone")

    async def ask() -> list[SharedPage | BaseException | None]:
        pages = SharedPages()
        return await asyncio.gather(*(pages.render(("/",), str, work) for _ in range(3)), return_exceptions=True)

    assert [type(one) for one in asyncio.run(ask())] == [OSError] * 3


def test_old_pages_give_way() -> None:
    async def ask() -> list[SharedPage | None]:
        pages = SharedPages()
        for number in range(100):
            await pages.render((number,), str, lambda _: SharedPage("", b"x"))
        return [await pages.render((number,), str, lambda _: None) for number in (0, 99)]

    assert asyncio.run(ask()) == [None, SharedPage("", b"x")]


def test_request_without_a_header_gets_the_plain_page() -> None:
    reply = SharedPage.pack("t", "x" * 5000).reply(Request({"type": "http", "headers": []}))
    assert (reply.status_code, "content-encoding" in reply.headers, reply.headers["etag"]) == (200, False, '"t"')


def test_a_fleet_without_any_ticket_has_all_its_pages(tmp_path: Path) -> None:
    state = make_state(load_fleet(ROOT), tmp_path)
    enroll_nodes(state.context)
    reader = serve_pages(state)
    assert {reader.get(path).status for path in ("/", "/tickets", "/rollouts", "/customer")} == {200}
