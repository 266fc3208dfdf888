"""What came of a slim item, and the one report that pytest and its plugins get of it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import pytest

from assay.harness.calm import CalmRepr
from assay.harness.slim import SlimItem
from assay.model.outcome import Verdict

Phase = Literal["setup", "call", "teardown"]
RESULTS: dict[Verdict, Literal["passed", "failed", "skipped"]] = {
    "pass": "passed",
    "fail": "failed",
    "error": "failed",
    "skip": "skipped",
}


class Judged(NamedTuple):
    """What came of one item. `when` says how far it came: its arguments were made, or the check was called."""

    verdict: Verdict
    reason: str
    when: Phase
    start: float
    duration_s: float
    printed: str = ""


def report(item: SlimItem, judged: Judged) -> pytest.TestReport:
    """Return the one report: of a failure or an error one line, of a skip where and why."""
    result = RESULTS[judged.verdict]
    told: CalmRepr | tuple[str, int, str] | None = None
    if result == "failed":
        told = CalmRepr(str(item.path), item.check.line, judged.reason)
    elif result == "skipped":
        told = (str(item.path), item.check.line + 1, f"Skipped: {judged.reason}")
    return pytest.TestReport(
        nodeid=item.id,  # as it is taken apart already
        location=item.location,
        keywords=item.check.keywords,
        outcome=result,
        longrepr=told,  # type: ignore[arg-type]  # `CalmRepr` has the form that pytest expects
        when=judged.when,
        sections=[("Captured output", judged.printed)] if judged.printed else (),
        duration=judged.duration_s,
        start=judged.start,
        stop=judged.start + judged.duration_s,
        verdict=judged.verdict,  # read by pytest_report_teststatus, also after a trip through xdist
    )


class Passed:
    """The report of a pass for those who look back at the end of a session, which is made when one does."""

    __slots__ = ("_item", "_judged")
    count_towards_summary = True

    def __init__(self, item: SlimItem, judged: Judged) -> None:
        self._item, self._judged = item, judged

    def __getattr__(self, name: str) -> Any:
        """Return what the report would have."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(report(self._item, self._judged), name)
