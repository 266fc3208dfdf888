"""The form of a page gives an order: only what its visitor may order, in its name, and once."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from assay.tell.api import order_routes
from assay.tell.pages import page_routes
from assay.tell.server.requests import reply_refusal
from tests.tell.asgi_calls import Caller, Reply, let_in, make_state
from tests.tell.fleet_with_history import ROLLOUT, make_fleet_with_history

ROLES = {"ann": "operator", "eve": "operator", "tom": "technician", "vic": "viewer"}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def site(tmp_path: Path) -> Caller:
    digests = {name: hashlib.sha256(f"token-of-{name}".encode()).hexdigest() for name in ROLES}
    visitors = {name: {"role": role, "token": {"sha256": digests[name]}} for name, role in ROLES.items()}
    state = make_state(let_in(make_fleet_with_history(tmp_path), {"visitors": visitors}), tmp_path / ".assay")
    routes = [*page_routes.routes(state), *order_routes.routes(state)]
    return Caller(Starlette(routes=routes, exception_handlers={HTTPException: reply_refusal}))


def read(site: Caller, who: str, path: str) -> str:
    reply = site.get(path, authorization=f"Bearer token-of-{who}", sec_fetch_mode="navigate")
    assert reply.status == 200
    return reply.body.decode()


def list_buttons(page: str) -> list[str]:
    return re.findall(r'<button name="order" value="(\w+)">', page)


def submit(site: Caller, who: str, page: str, **fields: str) -> Reply:
    (address,) = re.findall(r'<form class="filters" method="post" action="([^"]+)">', page)
    (after,) = re.findall(r'name="after" value="(\d+)"', page)
    body = urlencode({"after": after, **fields}).encode()
    return site.post(address, body, authorization=f"Bearer token-of-{who}", content_type=FORM)


def test_a_page_offers_what_its_visitor_may_order_and_what_changes_something(site: Caller) -> None:
    paths = ("/nodes/n0001", "/nodes/n0004", "/nodes/n0005", f"/rollouts/{ROLLOUT}")
    offered = {who: [list_buttons(read(site, who, path)) for path in paths] for who in ROLES}
    assert offered == {
        "ann": [["hold", "certify"], ["hold"], ["release"], ["pause"]],
        "eve": [["hold", "certify"], ["hold"], ["release"], ["pause"]],
        "tom": [["certify"], [], [], []],
        "vic": [[], [], [], []],
    }


def test_an_order_from_a_page_is_given_once_and_shown_with_its_name_and_reason(site: Caller) -> None:
    page = read(site, "ann", "/nodes/n0004")
    fields = {"order": "hold", "reason": "looks at <b>heat</b>", "for": "2h"}
    replies = [submit(site, "ann", page, **fields) for _ in range(2)]
    assert [(reply.status, reply.headers["location"]) for reply in replies] == [(303, "/nodes/n0004")] * 2
    page = read(site, "ann", "/nodes/n0004")
    assert "Held by ann" in page
    assert "looks at &lt;b&gt;heat&lt;/b&gt;" in page
    assert list_buttons(page) == ["release"]
    assert page.count("looks at &lt;b&gt;") == 2, "in the card, and once in what happened"


def test_a_browser_gets_a_kept_page_at_once_and_who_ordered_something_gets_it_as_it_is(site: Caller) -> None:
    page = read(site, "ann", "/nodes/n0004")
    assert submit(site, "ann", page, order="hold", reason="looks at heat").status == 303
    held = ["Held by ann" in read(site, who, "/nodes/n0004") for who in ("eve", "ann", "eve")]
    assert held == [False, True, True]


def test_a_rollout_is_paused_from_its_page(site: Caller) -> None:
    page = read(site, "ann", f"/rollouts/{ROLLOUT}")
    assert submit(site, "ann", page, order="pause", reason="a fan fails").status == 303
    assert list_buttons(read(site, "ann", f"/rollouts/{ROLLOUT}")) == ["resume"]
