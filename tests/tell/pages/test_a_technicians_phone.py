"""A technician's phone, in Chromium: the word that it is done goes to the ticket, and the page shows it by itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.support.browser import needs_browser, open_browser
from tests.support.site_of_agents import Site
from tests.tell.fleet_with_history import make_fleet_with_history, make_ticket

pytestmark = [pytest.mark.slow(minutes=1), needs_browser]
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A fleet in which tom is a technician with a token."""
    make_fleet_with_history(tmp_path / "fleet")
    policy = tmp_path / "fleet/specs/lifecycle/default.yaml"
    token = {"sha256": hashlib.sha256(b"token-of-tom").hexdigest()}
    access = {"visitors": {"tom": {"role": "technician", "token": token}}}
    policy.write_text(f"{policy.read_text()}\naccess: {json.dumps(access)}\n")
    return Site.of_fleet(tmp_path)


def test_the_word_that_it_is_done(site: Site) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect

    site.serve()
    with open_browser() as browser:
        headers = {"Authorization": "Bearer token-of-tom"}
        page, said = browser.new_context(extra_http_headers=headers).new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.set_viewport_size(PHONE)
        page.goto(f"{site.url}/tickets/{make_ticket().id}")
        page.get_by_label("What you did").fill("reseated both ends")
        page.get_by_role("button", name="Done, check it").click()
        expect(page.locator("#done")).to_contain_text("Waits for the proof.", timeout=60_000)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert [one["id"] for one in Axe().run(page).response["violations"]] == []
        assert said == []
    site.end()
