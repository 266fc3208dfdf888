"""Pages of a real `assay serve`: that they load nothing from elsewhere, and follow the ledger until the server ends."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.support.browser import needs_browser, open_browser
from tests.support.places import ROOT
from tests.support.site_of_agents import Site
from tests.tell.fleet_with_history import make_fleet_with_history

HOLD = {"who": "ann", "reason": "as planted"}
VENDORED = {  # of the npm packages htmx.org@4.0.1: dist/htmx.min.js, dist/ext/hx-sse.min.js
    "htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "hx-sse.min.js": "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
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


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def get(site: Site, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.request("GET", path, headers=site.reader | headers)
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()


def test_a_page_loads_only_what_the_server_has(site: Site) -> None:
    status, _, page = get(site, "/")
    assert status == 200
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    for url in re.findall(r'(?:href|src)="(/static/[^"]+)"', page):
        assert get(site, url)[0] == 200


def test_pages_are_only_for_who_can_read_the_token(site: Site) -> None:
    for path in ("/", "/live", "/api/v1/nodes"):
        assert get(site, path, Authorization="")[0] == 401
    assert "log in with the token in" in site.log("serve")


def test_htmx_comes_with_its_extension_in_one_script(site: Site) -> None:
    live, _ = re.findall(r'<script src="([^"]+)"', get(site, "/")[2])
    script = get(site, live)[2]
    assert 'registerExtension("sse"' in script.partition("document.readyState")[2]


@pytest.mark.parametrize("name", VENDORED)
def test_scripts_are_the_published_ones(name: str) -> None:
    path = ROOT / "src/assay/tell/pages/static" / name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == VENDORED[name]


def test_an_open_page_hears_of_a_new_entry(site: Site) -> None:
    ledger = Ledger.open(site.fleet / ".assay/ledger.sqlite")
    head = ledger.head()
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.request("GET", f"/live?after={head}", headers=site.reader)
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    ledger.append(LedgerEntry("hold-live", now(), "hold", "n0010", HOLD))
    lines = [answer.readline().decode().strip() for _ in range(8)]
    while not any(line.startswith("id: ") for line in lines):
        lines.append(answer.readline().decode().strip())
    assert f"id: {head + 1}" in lines
    connection.close()
    ledger.close()


@needs_browser
def test_a_page_in_a_browser_shows_a_new_entry_by_itself(site: Site) -> None:
    from playwright.sync_api import expect

    with open_browser() as browser:
        viewport = {"width": 390, "height": 800}
        page, said = browser.new_page(viewport=viewport, extra_http_headers=site.reader), []
        page.on("console", lambda message: said.append(message.text))
        page.goto(f"{site.url}/")
        node = page.locator("a.cell", has_text="n0011")
        expect(node).to_have_class("cell serving")
        ledger = Ledger.open(site.fleet / ".assay/ledger.sqlite")
        ledger.append(LedgerEntry("hold-browser", now(), "hold", "n0011", HOLD))
        ledger.close()
        expect(node).to_have_class("cell held")
        assert (said, page.evaluate("document.documentElement.scrollWidth")) == ([], 390)


def test_a_server_with_open_streams_ends_when_it_is_told(tmp_path: Path, site: Site) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.request("GET", "/live", headers=site.reader)
    assert connection.getresponse().status == 200
    assert site.server is not None
    assert json.dumps(site.kill(site.server, 15)) in ("0", "-15")
