"""Shows a page in Chromium, for tests of how pages look."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium")
PATIENCE_MS = 90_000  # others load this machine
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: `make system` installs it")


@contextmanager
def open_browser() -> Iterator:
    """Yield a Chromium of Playwright."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def show(html: str, width: int = 1280, height: int = 800) -> Iterator:
    """Yield the Playwright page of a window of this size that shows `html`."""
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_content(html)
        yield page


def measure_overflow(html: str, width: int) -> int:
    """Return by how many pixels the page is wider than a window of this width."""
    with show(html, width) as page:
        return page.evaluate("document.documentElement.scrollWidth") - width
