"""Judges slim items: one call, one outcome, one report, between pytest's own wrappers and hooks."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest

from assay.harness.calm import CalmRepr
from assay.harness.shelf import Shelf
from assay.harness.silence import Unjudgeable
from assay.harness.slim import SlimItem
from assay.harness.trial import Trial
from assay.harness.verdict import said, settled, unearned, verdict_of
from assay.model.outcome import Outcome, Verdict

Phase = Literal["setup", "call", "teardown"]
THROUGH = (KeyboardInterrupt, pytest.exit.Exception)
"""What ends the session and is no word on a check."""
ACTED_ON = {"skip", "skipif", "xfail", "usefixtures"}
RESULTS: dict[Verdict, Literal["passed", "failed", "skipped"]] = {
    "pass": "passed",
    "fail": "failed",
    "error": "failed",
    "skip": "skipped",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of one item. `when` says how far it came: its arguments were made, or the check was called."""

    verdict: Verdict
    reason: str
    when: Phase
    start: float
    duration_s: float
    printed: str = ""


class Protocol:
    """The hooks that run slim items by the evidence on `shelf`. `take` is given each outcome."""

    def __init__(self, config: pytest.Config, shelf: Shelf, take: Callable[[Outcome], None]) -> None:
        self._shelf, self._take = shelf, take
        self._out = None if config.getoption("capture") == "no" else io.StringIO()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Judge a slim item and report it; leave every other to pytest."""
        if not isinstance(item, SlimItem):
            return None
        marks = item.check.marks
        trial = Trial(item.check.id, item.subject, item.whose, self._shelf, marks.phases, marks.fault, marks.active)
        judged = judge(item, trial, self._out)
        self._take(trial.outcome(judged.verdict, judged.reason, judged.duration_s))
        hook = item.config.hook
        hook.pytest_runtest_logreport(report=report(item, judged))
        if nextitem is None:
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)  # writes [100%]
        tidy(item, nextitem)
        return True


def judge(item: SlimItem, trial: Trial, out: io.StringIO | None) -> Judged:
    """Call the check and return its verdict by the rules of suites. What it prints goes to `out`, if there is one."""
    when: Phase = "setup"
    start, began = time.time(), time.perf_counter()
    was = sys.stdout, sys.stderr
    if out is not None:
        sys.stdout = sys.stderr = out
    try:
        refuse_marks(item.added)
        arguments = item.check.recipe.made(trial)
        when = "call"
        item.check.function(**arguments)
        error = unearned(trial)
    except THROUGH:
        raise
    except BaseException as raised:  # SystemExit too: a check that exits has not passed
        error = settled(raised)
    finally:
        sys.stdout, sys.stderr = was
    duration = time.perf_counter() - began
    return Judged(verdict_of(error, when), said(error) if error else "", when, start, duration, taken_from(out))


def refuse_marks(added: list[str]) -> None:
    """Refuse what a slim item cannot do. Raises Unjudgeable for a mark that was added to the item alone."""
    if acted_on := [name for name in added if name in ACTED_ON]:
        raise Unjudgeable(f"was marked {acted_on[0]} after it was collected; mark the function instead")


def taken_from(out: io.StringIO | None) -> str:
    """Return what was printed, and make room for the next."""
    if out is None or not out.tell():
        return ""
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


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


def tidy(item: SlimItem, nextitem: pytest.Item | None) -> None:
    """Tear down what ordinary items have left standing for a neighbour that turned out to be slim.

    pytest does this in an item's own teardown, which slim items do not have. What goes wrong there is reported.
    """
    standing = item.session._setupstate
    if not standing.stack:
        return
    call = pytest.CallInfo.from_call(lambda: standing.teardown_exact(nextitem), "teardown", THROUGH)
    if call.excinfo is not None:
        judged = Judged("error", said(call.excinfo.value), "teardown", call.start, call.duration)
        item.config.hook.pytest_runtest_logreport(report=report(item, judged))
