"""Every page in Chromium: on a phone, a tablet and a desk, light and dark; judged by axe-core; used by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import needs_browser, open_browser
from tests.support.site_of_agents import Site
from tests.tell.fleet_with_history import ROLLOUT, make_fleet_with_history, make_ticket
from tests.tell.pages.scanned_fabric import store_faulty_scan
from tests.tell.pages.test_trends_page import write_runs

pytestmark = [pytest.mark.slow(minutes=3), needs_browser]
WIDTHS = (390, 820, 1400)
PAGES = [
    "/",
    "/?pool=h100-a&standing=people",
    "/nodes/n0004",
    "/nodes/n0006",
    "/nodes/n0007",
    "/racks/r02?site=lab1",
    "/pools/h100-a",
    "/trends",
    "/fabric",
    "/fabric/leaf-su01-r3",
    "/rollouts",
    f"/rollouts/{ROLLOUT}",
    "/tickets",
    f"/tickets/{make_ticket().id}",
    "/customer",
    "/idle",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    store_faulty_scan(make_fleet_with_history(home / "fleet"), home / "fleet/.assay")
    write_runs(home / "fleet/reports")
    site = Site.of_fleet(home)
    site.serve()
    yield site
    site.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_and_axe_finds_nothing(site: Site, browser: Any, path: str, theme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(color_scheme=theme, extra_http_headers=site.reader)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{site.url}{path}")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
    assert (said, page.title().endswith(" · assay")) == ([], True)
    context.close()


def test_the_fleet_is_filtered_by_keyboard_and_the_address_keeps_the_filter(site: Site, browser: Any) -> None:
    from playwright.sync_api import expect

    page = browser.new_page(extra_http_headers=site.reader)
    page.goto(site.url)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("To the content")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_label("Node or rack").fill("n0007")
    page.keyboard.press("Enter")
    expect(page.locator("a.cell")).to_have_count(1)
    assert "text=n0007" in page.url
    page.locator("a.cell").press("Enter")
    expect(page.locator("h1")).to_contain_text("n0007: draining")
    page.close()


def test_a_rule_leads_to_its_line(site: Site, browser: Any) -> None:
    from playwright.sync_api import expect

    page = browser.new_page(extra_http_headers=site.reader)
    page.goto(f"{site.url}/nodes/n0007")
    page.get_by_text("Decisions", exact=True).click()
    page.locator(".chain a").first.click()
    expect(page.locator("li:target")).to_contain_text("catastrophic-again")
    page.close()
