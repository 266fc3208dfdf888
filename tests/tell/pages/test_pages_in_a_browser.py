"""Every page in Chromium: on a phone, a tablet and a desk, light and dark; judged by axe-core; used by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import needs_browser, open_browser
from tests.support.site_of_agents import Site
from tests.tell.fleet_with_history import ROLLOUT, make_fleet_with_history, make_ticket
from tests.tell.pages.scanned_fabric import store_faulty_scan

pytestmark = [pytest.mark.slow(minutes=3), needs_browser]
WIDTHS = (195, 390, 820, 1400)
"""The first is a phone at 200 % zoom."""
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
    "/machines",
    "/search?text=n000",
    ABSENT := "/nosuch",
]


SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll("main p, main li")].map(
    one => parseFloat(getComputedStyle(one).fontSize)))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    store_faulty_scan(make_fleet_with_history(home / "fleet"), home / "fleet/.assay")
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
    refused = [text for text in said if "404 (Not Found)" in text]
    assert (said, page.title().endswith(" · assay")) == (refused if path == ABSENT else [], True)
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


def test_one_field_finds_a_node_and_its_page_leads_to_its_ticket_its_ports_and_back(site: Site, browser: Any) -> None:
    from playwright.sync_api import expect

    page = browser.new_page(extra_http_headers=site.reader, viewport={"width": 1440, "height": 900})
    page.goto(f"{site.url}/trends")
    page.get_by_role("searchbox").fill("n0009")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("n0009")
    page.locator(".leads").get_by_text("Ports").click()
    expect(page.locator("#ports + table")).to_be_in_viewport()
    page.locator("#ports + table a").first.click()
    expect(page.locator("h1")).to_contain_text("Switch leaf-")
    page.go_back()
    page.locator(".leads").get_by_text("Ticket:").click()
    expect(page.locator("h1")).to_contain_text("Cable of n0009")
    page.get_by_role("link", name="n0009", exact=True).first.click()
    expect(page.locator("h1")).to_contain_text("n0009")
    page.close()


@pytest.mark.parametrize("node", ["n0003", "n0004", "n0007"])
def test_the_columns_of_a_node_are_of_like_length(site: Site, browser: Any, node: str) -> None:
    page = browser.new_page(extra_http_headers=site.reader, viewport={"width": 1440, "height": 900})
    page.goto(f"{site.url}/nodes/{node}")
    ends = page.evaluate("""() => {
        const ends = {};
        for (const section of document.querySelectorAll(".balanced > section")) {
            const box = section.getBoundingClientRect();
            ends[Math.round(box.left)] = Math.max(ends[Math.round(box.left)] || 0, box.bottom);
        }
        const top = document.querySelector(".balanced").getBoundingClientRect().top;
        return Object.values(ends).map(end => end - top);
    }""")
    assert len(ends) == 2
    assert min(ends) > 0.6 * max(ends)
    page.close()


def test_a_login_leads_to_the_ticket_after_a_wrong_token_too(site: Site, browser: Any) -> None:
    from playwright.sync_api import expect

    page = browser.new_page()
    page.goto(f"{site.url}/tickets/{make_ticket().id}")
    page.get_by_label("Your token").fill("guess")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    page.get_by_label("Your token").fill(site.reader["Authorization"].partition(" ")[2])
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Cable of n0009")
    page.close()


@pytest.mark.parametrize("path", [f"/tickets/{make_ticket().id}", "/customer?node=n0003"])
def test_a_phone_shows_place_and_act_first(site: Site, browser: Any, path: str) -> None:
    from playwright.sync_api import expect

    page = browser.new_page(extra_http_headers=site.reader, viewport={"width": 390, "height": 760})
    page.goto(f"{site.url}{path}")
    first = page.get_by_text("n0009 port mlx5_3").first if "tickets" in path else page.locator(".card p").first
    expect(first).to_be_in_viewport()
    if "tickets" in path:
        expect(page.get_by_text("Reseat both ends.")).to_be_in_viewport()
    page.close()


@pytest.mark.parametrize("path", [f"/tickets/{make_ticket().id}", "/customer", "/racks/r02?site=lab1"])
def test_paper_has_one_sheet_no_navigation_and_the_address(site: Site, browser: Any, path: str) -> None:
    page = browser.new_page(extra_http_headers=site.reader)
    page.goto(f"{site.url}{path}")
    assert page.locator("#paper").is_hidden()
    page.emulate_media(media="print")
    assert page.locator("#paper figcaption").inner_text() == f"{site.url}{path}"
    assert page.locator("#paper svg").is_visible()
    colours = [
        page.locator(f"#paper {part}").evaluate("one => getComputedStyle(one).fill") for part in ("rect", "path")
    ]
    assert colours == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    for screen in ("nav", "input", "button", "form"):
        assert not any(one.is_visible() for one in page.locator(screen).all())
    assert page.evaluate(SMALLEST_TEXT) >= 6
    assert len(re.findall(rb"/Type\s*/Page[^s]", page.pdf(format="A4"))) == 1
    page.close()
