"""Where the pages of a report are, as relative links that work from the file system too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass

from assay.results.report.allure_results import result_uuid

PAGES_FOLDER = "pages"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def page_file(name: str) -> str:
    """Return the file name of the page of a node, check or run. Distinct names have distinct files."""
    safe = _UNSAFE.sub("-", name)
    digest = "" if safe == name else f"-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"{safe.removeprefix('suites-')[-120:]}{digest}.html"


@dataclass(frozen=True)
class PageLinks:
    """The links of a page. `home` leads from its folder to that of the overview: "" or `../../`.

    `runs` are those with a page. `newest` is the run of the Allure report, "" where there is none. Pages
    `in_lab` are of virtual machines.
    """

    home: str = ""
    runs: Collection[str] = ()
    newest: str = ""
    in_lab: bool = False

    def overview(self) -> str:
        """Return the link to the overview."""
        return f"{self.home}index.html"

    def node(self, holder: str) -> str:
        """Return the link to the page of a node, rack or fabric."""
        return f"{self.home}{PAGES_FOLDER}/nodes/{page_file(holder)}"

    def check(self, check: str) -> str:
        """Return the link to the page of a check."""
        return f"{self.home}{PAGES_FOLDER}/checks/{page_file(check)}"

    def run(self, run: str) -> str:
        """Return the link to the page of a run, "" for none."""
        return f"{self.home}{PAGES_FOLDER}/runs/{page_file(run)}" if run in self.runs else ""

    def allure(self, holder: str = "") -> str:
        """Return the link to the Allure report, or to the result of a node, rack or fabric in it.

        Browsers load the report over HTTP only.
        """
        result = result_uuid(holder, self.newest).encode()
        anchor = f"#{hashlib.md5(result, usedforsecurity=False).hexdigest()}" if holder else ""
        return f"{self.home}allure/index.html{anchor}"


NO_PAGES = PageLinks()
