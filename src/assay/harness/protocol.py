"""Judges slim items: one call, one outcome, one report, between pytest's own wrappers and hooks."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence

import pytest

from assay.harness.reported import Judged, Phase, report
from assay.harness.shelf import Shelf
from assay.harness.silence import Unjudgeable
from assay.harness.slim import SlimItem
from assay.harness.trial import Trial
from assay.harness.verdict import said, settled, unearned, verdict_of
from assay.harness.warned import Warned
from assay.model.outcome import Outcome

Tell = Callable[[SlimItem, Judged], None]
THROUGH = (KeyboardInterrupt, pytest.exit.Exception)
"""What ends the session and is no word on a check."""
ACTED_ON = {"skip", "skipif", "xfail", "usefixtures", "flaky"}


class Protocol:
    """The hooks that run slim items by the evidence on `shelf`. `take` is given each outcome with its trial."""

    def __init__(self, config: pytest.Config, shelf: Shelf, take: Callable[[Outcome, Trial], None]) -> None:
        self._shelf, self._take, self._hook = shelf, take, config.hook
        self._out = None if config.getoption("capture") == "no" else io.StringIO()
        self._neighbours: Sequence[SlimItem] = ()
        self._tell: Tell = self._report
        self.judged = 0

    def judge_together(self, items: Sequence[SlimItem], tell: Tell | None) -> None:
        """Let the next call of the hook judge all of these, and `tell` of each, in place of pytest's own hook.

        `judged` then says how many were, since that ends where the session shall.
        """
        self._neighbours, self._tell = items, tell or self._report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Judge a slim item and report it; leave every other to pytest."""
        self.judged = 1
        if not isinstance(item, SlimItem):
            return None
        if self._neighbours:
            self._judge_neighbours(item.session, nextitem)
        else:
            self._judge(item, nextitem)
        return True

    def _judge_neighbours(self, session: pytest.Session, nextitem: pytest.Item | None) -> None:
        items, self._neighbours = self._neighbours, ()
        with Warned(session.config) as warned:
            for self.judged, item in enumerate(items, 1):
                warned.item = item
                self._judge(item, items[self.judged] if self.judged < len(items) else nextitem)
                if warned.any or session.shouldfail or session.shouldstop:
                    return

    def _judge(self, item: SlimItem, nextitem: pytest.Item | None) -> None:
        marks = item.check.marks
        trial = Trial(item.check.id, item.subject, item.whose, self._shelf, marks.phases, marks.fault, marks.active)
        judged = judge(item, trial, self._out)
        self._take(trial.outcome(judged.verdict, judged.reason, judged.duration_s), trial)
        self._tell(item, judged)
        if nextitem is None:
            self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if item.session._setupstate.stack:
            tidy(item, nextitem)

    def _report(self, item: SlimItem, judged: Judged) -> None:
        self._hook.pytest_runtest_logreport(report=report(item, judged))


def judge(item: SlimItem, trial: Trial, out: io.StringIO | None) -> Judged:
    """Call the check and return its verdict by the rules of suites. What it prints goes to `out`, if there is one."""
    when: Phase = "setup"
    start, began = time.time(), time.perf_counter()
    was = sys.stdout, sys.stderr
    if out is not None:
        sys.stdout = sys.stderr = out
    try:
        if item.own_markers is not item.check.own_markers:
            refuse_marks(item.added)
        arguments = item.check.recipe.made(trial)
        when = "call"
        item.check.function(**arguments)
        error = unearned(trial)
    except THROUGH:
        raise
    except BaseException as raised:  # SystemExit too: a check that exits has not passed
        error = settled(raised).with_traceback(None)  # which would hold on to all that this check has looked at
    finally:
        sys.stdout, sys.stderr = was
    duration, printed = time.perf_counter() - began, taken_from(out)
    if error is None:
        return Judged("pass", "", when, start, duration, printed)
    return Judged(verdict_of(error, when), said(error), when, start, duration, printed)


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


def tidy(item: SlimItem, nextitem: pytest.Item | None) -> None:
    """Tear down what ordinary items have left standing for a neighbour that turned out to be slim.

    pytest does this in an item's own teardown, which slim items do not have. What goes wrong there is reported.
    """
    standing = item.session._setupstate
    call = pytest.CallInfo.from_call(lambda: standing.teardown_exact(nextitem), "teardown", THROUGH)
    if call.excinfo is not None:
        judged = Judged("error", said(call.excinfo.value), "teardown", call.start, call.duration)
        item.config.hook.pytest_runtest_logreport(report=report(item, judged))
