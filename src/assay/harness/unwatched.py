"""Takes out of a page what would tell a stranger who reads it: scripts that it loads from elsewhere.

Allure writes Google's tag manager into each report, and cannot be told not to. Who reads of a fleet, nobody counts.
"""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import accumulate
from urllib.parse import urlsplit


def unwatched(page: str) -> str:
    """Return the page without the scripts of other hosts, and else the same to the letter."""
    found = _Foreign(page)
    found.feed(page)
    found.close()
    for start, end in reversed(found.spans):
        page = page[:start] + page[end:]
    return page


class _Foreign(HTMLParser):
    """Notes where elements begin and end that are scripts of other hosts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.spans: list[tuple[int, int]] = []
        self._lines = [0, *accumulate(len(line) + 1 for line in page.split("\n"))]
        self._begun: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin at a script whose source names a host."""
        if tag == "script" and urlsplit(dict(attrs).get("src") or "").netloc:
            self._begun = self._at()

    def handle_endtag(self, tag: str) -> None:
        """End with it."""
        if tag == "script" and self._begun is not None:
            self.spans.append((self._begun, self._at() + len("</script>")))
            self._begun = None

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column
