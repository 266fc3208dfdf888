"""A page of the tickets of a large fleet: found by a word, sorted, and a hundred at a time."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from assay.model.clock import SystemClock
from assay.model.ticket import TicketEvent, TicketPlace, TicketRecord
from assay.tell.pages.fleet_pages import render_tickets_page
from assay.tell.pages.page_frame import PageRequest
from tests.support.ticket_room import ticket

OPENED = TicketEvent("2026-11-21T12:00:00+00:00", "opened")


def make_record(number: int) -> TicketRecord:
    severity = "catastrophic" if number == 249 else "degraded"
    place = TicketPlace(f"n{number:04}", "lab1", f"r{number // 10:02}", 4)
    about = {"id": f"{number:016x}", "title": f"fault of n{number:04}", "node": place.device}
    return TicketRecord(replace(ticket(), **about, places=(place,), severity=severity), OPENED.at, history=(OPENED,))


@pytest.fixture(scope="module")
def records() -> Any:
    every = [make_record(number) for number in range(250)]
    ledger = SimpleNamespace(outcomes_head=lambda: 1)
    return SimpleNamespace(read_tickets=lambda: every, ledger_for_reading=ledger)


def show(records: Any, **query: str) -> str:
    return render_tickets_page(records, PageRequest("/tickets", {}, query, 1, SystemClock().now()))


def list_shown(page: str) -> list[str]:
    return [part[:5] for part in page.split(">fault of ")[1:]]


def test_a_page_has_a_hundred_and_leads_to_the_others(records: Any) -> None:
    first, last = show(records), show(records, page="3")
    assert (list_shown(first)[0], len(list_shown(first))) == ("n0000", 100)
    assert "1 to 100 of 250" in first
    assert 'href="/tickets?page=2"' in first
    assert (list_shown(last), "More</a>" in last) == ([f"n{number:04}" for number in range(200, 250)], False)


@pytest.mark.parametrize("page", ["0", "99", "-1", "x", "9" * 400])
def test_a_page_that_is_not_there_is_the_nearest(records: Any, page: str) -> None:
    assert list_shown(show(records, page=page))


def test_tickets_are_found_and_sorted_on_the_server(records: Any) -> None:
    assert list_shown(show(records, text="R07")) == [f"n{number:04}" for number in range(70, 80)]
    assert list_shown(show(records, order="worst"))[:2] == ["n0249", "n0000"]
    assert list_shown(show(records, text="catastrophic")) == ["n0249"]
    assert "No open ticket matches" in show(records, text="nosuch")
