"""What came of a slim item, and the one report that pytest and its plugins get of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
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
    """The report of a pass, which is made when somebody looks at more of it than how long it took."""

    __slots__ = ("_item", "_start", "duration")
    count_towards_summary = True

    def __init__(self, item: SlimItem, start: float, duration: float) -> None:
        self._item, self._start, self.duration = item, start, duration

    def __getattr__(self, name: str) -> Any:
        """Return what the report would have, `__dict__` too: that is where plugins look for what they left there."""
        if name.startswith("_") and name != "__dict__":
            raise AttributeError(name)
        return getattr(report(self._item, Judged("pass", "", "call", self._start, self.duration)), name)


class Passes(list[Any]):
    """The reports that the terminal keeps of what passed; there are none of slim items before somebody looks at them.

    So a session of many passes stays small, and its garbage is collected soon.
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: list[SlimItem] = []
        self._starts, self._durations = array("d"), array("d")

    def take(self, item: SlimItem, judged: Judged) -> None:
        """Take a pass."""
        self._items.append(item)
        self._starts.append(judged.start)
        self._durations.append(judged.duration_s)

    def __len__(self) -> int:
        return super().__len__() + len(self._items)

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        yield from map(Passed, self._items, self._starts, self._durations)

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]
