"""A technician's phone: the word that the work is done. It asks for the proof, and closes nothing."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from assay.tell.api import order_routes
from assay.tell.pages import page_routes
from assay.tell.server.app_state import AppState
from assay.tell.server.requests import reply_refusal
from tests.tell.asgi_calls import Caller, Reply, let_in, make_state
from tests.tell.fleet_with_history import make_fleet_with_history, make_ticket

ROLES = {"ann": "operator", "tom": "technician", "vic": "viewer"}
TICKET = make_ticket()
PAGE, ORDERS = f"/tickets/{TICKET.id}", f"/api/v1/tickets/{TICKET.id}/orders"
FORM = "application/x-www-form-urlencoded"


class Site(NamedTuple):
    caller: Caller
    state: AppState

    def get(self, path: str, who: str = "tom") -> Reply:
        return self.caller.get(path, authorization=f"Bearer token-of-{who}")

    def post(self, path: str, body: bytes, who: str = "tom", **headers: str) -> Reply:
        return self.caller.post(path, body, authorization=f"Bearer token-of-{who}", **headers)

    def say_done(self, reason: str = "reseated both ends", who: str = "tom") -> Reply:
        (after,) = re.findall(r'name="after" value="(\d+)"', self.get(PAGE, who).body.decode())
        fields = urlencode({"after": after, "order": "done", "reason": reason}).encode()
        return self.post(ORDERS, fields, who, content_type=FORM)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    digests = {name: hashlib.sha256(f"token-of-{name}".encode()).hexdigest() for name in (*ROLES, "cus")}
    visitors = {name: {"role": role, "token": {"sha256": digests[name]}} for name, role in ROLES.items()}
    visitors["cus"] = {"role": "customer", "pools": ["h100-a"], "token": {"sha256": digests["cus"]}}  # type: ignore[dict-item]
    state = make_state(let_in(make_fleet_with_history(tmp_path), {"visitors": visitors}), tmp_path / ".assay")
    routes = [*page_routes.routes(state), *order_routes.routes(state)]
    return Site(Caller(Starlette(routes=routes, exception_handlers={HTTPException: reply_refusal})), state)


def test_a_technician_says_once_that_it_is_done_and_the_ticket_waits_for_its_proof(site: Site) -> None:
    replies = [site.say_done("reseated <b>both</b> ends") for _ in range(2)]
    assert [(reply.status, reply.headers["location"]) for reply in replies] == [(303, PAGE)] * 2
    page = site.get(PAGE).body.decode()
    assert "Waits for the proof." in page
    assert "reseated &lt;b&gt;both&lt;/b&gt; ends" in page
    assert len(site.state.context.ledger.entries(kinds=["ticket.done"])) == 1
    (record,) = [one for one in site.state.records.read_tickets() if one.ticket.id == TICKET.id]
    assert not record.closed_at


def test_who_only_reads_says_nothing(site: Site) -> None:
    for who in ("vic", "cus"):
        body = urlencode({"after": "0", "order": "done", "reason": "x"}).encode()
        assert site.post(ORDERS, body, who, content_type=FORM).status == 403
    assert 'value="done"' not in site.get(PAGE, "vic").body.decode()


def test_a_page_of_another_site_says_nothing(site: Site) -> None:
    stranger = site.caller.post(ORDERS, b"order=done&reason=x&after=0", content_type=FORM, sec_fetch_site="cross-site")
    assert stranger.status in (401, 403)
    assert site.state.context.ledger.entries(kinds=["ticket.done"]) == []


def test_a_closed_ticket_takes_no_word(site: Site) -> None:
    from assay.model.entries.tickets import TicketClosedEntry

    closed = TicketClosedEntry(TICKET.id, TICKET.title, "fabric scan compute at 12:00")
    site.state.context.ledger.append(closed.make_entry("c", site.state.context.now, TICKET.node))
    body = urlencode({"after": "9999", "order": "done", "reason": "x"}).encode()
    reply = site.post(ORDERS, body, content_type=FORM)
    assert (reply.status, "closed already" in reply.json["error"]) == (409, True)
