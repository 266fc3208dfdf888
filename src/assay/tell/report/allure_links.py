"""Where the Allure report and the results in it are, as links beside it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from assay.tell.report.allure import result_uuid

ALLURE_PAGE = "allure/index.html"


@dataclass(frozen=True)
class AllureLinks:
    """Links to the Allure report of a `run`, which browsers load over HTTP only. Without a run there are none."""

    run: str = ""

    def report(self) -> str:
        """Return the link to the report, "" for none."""
        return ALLURE_PAGE if self.run else ""

    def holder(self, name: str) -> str:
        """Return the link to the result of a node, rack or fabric, "" for none."""
        if not self.run:
            return ""
        result = hashlib.md5(result_uuid(name, self.run).encode(), usedforsecurity=False).hexdigest()
        return f"{ALLURE_PAGE}#{result}"


NO_ALLURE = AllureLinks()
