"""The feeds of customers, read by an independent feed reader: whom they tell what, and how a reader shows its token."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import feedparser
import pytest

sys.path.append(str(Path(__file__).parents[1] / "access"))
from asgi_calls import ELSEWHERE, Caller, let_in, make_state
from feedgenerator import Atom1Feed, Rss201rev2Feed
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from web.pages.fleet_with_history import HOSTILE, make_fleet_with_history

from assay.model.fleet import Fleet
from assay.views.customer.service_news import ServiceNews
from assay.web.pages import customer_feed, page_routes
from assay.web.pages.customer_feed import FEEDS, format_feed
from assay.web.request_bodies_and_refusals import reply_refusal

ATOM, RSS = FEEDS


def token_digest(name: str) -> dict[str, str]:
    return {"sha256": hashlib.sha256(f"token-of-{name}".encode()).hexdigest()}


ACCESS = {
    "visitors": {
        "acme": {"role": "customer", "pools": ["h100-a"], "token": token_digest("acme")},
        "other": {"role": "customer", "pools": ["byo-b"], "token": token_digest("other")},
    }
}


@pytest.fixture(scope="module")
def fleet_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Path]:
    root = tmp_path_factory.mktemp("fleet")
    return make_fleet_with_history(root), root / ".assay"


def serve(fleet: Fleet, home: Path) -> Caller:
    state = make_state(fleet, home)
    routes = [*customer_feed.routes(state), *page_routes.routes(state)]
    return Caller(Starlette(routes=routes, exception_handlers={HTTPException: reply_refusal}))


@pytest.fixture(scope="module")
def caller(fleet_home: tuple[Fleet, Path]) -> Caller:
    fleet, home = fleet_home
    return serve(let_in(fleet, ACCESS), home)


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


@pytest.mark.parametrize("path", FEEDS)
def test_a_feed_reader_reads_what_happened_in_plain_words(caller: Caller, path: str) -> None:
    reply = caller.showing("token-of-acme").get(path)
    assert (reply.status, reply.headers["content-type"]) == (200, FEEDS[path].content_type)
    feed: Any = feedparser.parse(reply.body)
    assert not feed.bozo, feed.get("bozo_exception")
    assert [one.title for one in feed.entries] == [
        "n0007 left service",
        "n0003 is back in service",
        "n0003 left service",
    ]
    assert "A GPU no longer answers" in feed.entries[0].summary
    assert "What we are doing" in feed.entries[0].summary
    assert feed.entries[2].summary.startswith("<p>The node was out of service from ")
    assert feed.entries[0].link.endswith("/customer?node=n0007")
    assert len({one.id for one in feed.entries}) == 3
    assert not re.search(r"gpu\.xid|production|HGX|off the bus", reply.body.decode()), (
        "no codes and no words of a device"
    )


def test_a_customer_reads_nothing_of_the_nodes_of_others(caller: Caller) -> None:
    reply = caller.showing("token-of-other").get(ATOM)
    assert (reply.status, feedparser.parse(reply.body).entries) == (200, [])
    assert not re.search(r"n00\d\d", reply.body.decode())


def test_a_feed_is_sent_again_only_after_news(caller: Caller) -> None:
    acme = caller.showing("token-of-acme")
    tag = acme.get(ATOM).headers["etag"]
    again = acme.get(ATOM, if_none_match=tag)
    assert (again.status, again.body) == (304, b"")
    assert acme.get(RSS, if_none_match=tag).status == 200
    assert caller.showing("token-of-other").get(ATOM, if_none_match=tag).status == 200


def test_a_token_is_the_password_of_basic_for_feeds_alone(caller: Caller) -> None:
    for name in ("acme", "", "whoever"):
        assert caller.get(ATOM, **basic(name, "token-of-acme")).status == 200
    assert caller.get(ATOM, **basic("acme", "token-of-nobody")).status == 401
    assert caller.get(ATOM, authorization="Basic %%%").status == 401
    assert caller.get("/customer", **basic("acme", "token-of-acme")).status == 401, "a page is for logins"


def test_who_shows_no_token_is_asked_for_one_and_not_led_to_the_login(caller: Caller) -> None:
    reply = caller.get(f"{ATOM}?token=token-of-acme", accept="application/atom+xml, text/html")
    assert (reply.status, reply.headers["www-authenticate"][:11]) == (401, "Basic realm")


def test_where_nobody_is_declared_only_this_machine_reads(fleet_home: tuple[Fleet, Path]) -> None:
    here = serve(*fleet_home)
    assert here.get(ATOM).status == 200
    assert replace(here, address=ELSEWHERE).get(ATOM).status == 403


@pytest.mark.parametrize("form", [Atom1Feed, Rss201rev2Feed])
def test_whatever_a_text_holds_is_text(form: Any) -> None:
    at = datetime(2031, 2, 3, tzinfo=UTC)
    news = ServiceNews("n1", "left", at, at, ((f"Why {HOSTILE}", f"]]> {HOSTILE}\nline two"),))
    feed: Any = feedparser.parse(
        format_feed(form, "https://assay.example.org/customer/feed.atom", [news]), sanitize_html=False
    )
    assert not feed.bozo
    assert not re.search(r"<(?!/?(h4|p|br)\b)", feed.entries[0].summary)
    assert "&lt;script&gt;" in feed.entries[0].summary
