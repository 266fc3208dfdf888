"""An open page shows a new entry by itself, even if a request of its own has failed before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.support.browser import needs_browser, open_browser
from tests.support.site_of_agents import Site
from tests.tell.fleet_with_history import make_fleet_with_history

FAILURES = {
    "no connection": lambda route: route.abort("connectionrefused"),
    "503": lambda route: route.fulfill(status=503, json={"error": "as many pages follow the ledger as may"}),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield a served fleet with history, over plain HTTP."""
    home = tmp_path_factory.mktemp("site")
    make_fleet_with_history(home / "fleet")
    site = Site.of_fleet(home)
    site.serve()
    yield site
    site.end()


@pytest.fixture(scope="module")
def page(site: Site) -> Iterator[Any]:
    """Yield a page of a browser, with no address yet."""
    with open_browser() as browser:
        yield browser.new_page(extra_http_headers=site.reader)


def fail_once(page: Any, what: str, failure: str) -> list[str]:
    """Let the next request of an address fail; return the list that it is written to."""
    failed: list[str] = []

    def handle(route: Any) -> None:
        if not failed:
            failed.append(route.request.url)
            FAILURES[failure](route)
        else:
            route.continue_()

    page.route(what, handle)
    return failed


def hold(site: Site, node: str) -> None:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    ledger = Ledger.open(site.fleet / ".assay/ledger.sqlite")
    ledger.append(LedgerEntry(f"hold-{node}", at, "hold", node, {"who": "ann", "reason": "as planted"}))
    ledger.close()


@needs_browser
@pytest.mark.parametrize(("failure", "node"), list(zip(FAILURES, ("n0010", "n0011"), strict=True)))
def test_a_stream_that_could_not_begin_begins_later(site: Site, page: Any, failure: str, node: str) -> None:
    from playwright.sync_api import expect

    page.unroute_all()
    failed = fail_once(page, "**/live?*", failure)
    page.goto(f"{site.url}/")
    hold(site, node)
    expect(page.locator("a.cell", has_text=node)).to_have_class("cell held")
    assert failed


@needs_browser
@pytest.mark.parametrize(("failure", "node"), list(zip(FAILURES, ("n0013", "n0014"), strict=True)))
def test_a_page_that_could_not_be_read_again_stays_and_is_read_later(
    site: Site, page: Any, failure: str, node: str
) -> None:
    from playwright.sync_api import expect

    page.unroute_all()
    with page.expect_response("**/live?*"):
        page.goto(f"{site.url}/")
    failed = fail_once(page, f"{site.url}/", failure)
    cell = page.locator("a.cell", has_text=node)
    expect(cell).to_have_class("cell serving")
    with page.expect_request(f"{site.url}/"):
        hold(site, node)
    expect(cell).to_have_count(1)
    expect(cell).to_have_class("cell held")
    assert failed
