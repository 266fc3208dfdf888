"""Judges slim items: one call, one outcome, one report, between pytest's own wrappers and hooks.

Lays a warning to the item that gave it, where pytest catches those of several neighbours together.

Runs a session in which only pytest itself looks at each item: neighbours that are slim in one call of the protocol.

Whatever wraps the protocol (warnings, the comparison of assertions) does so once for all of them, which is most of what
pytest's own loop would cost. Where a plugin or a conftest has a part in the protocol, that loop runs every item.

The order that items are judged in: what is read for one is read for its neighbours too.
"""

from __future__ import annotations

import gc
import io
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import TracebackType
from typing import Any, cast

import pytest

from assay.harness.items.slim_items import SlimItem
from assay.harness.items.terminal_report import OWN_PACKAGES, ItemPhase, ItemVerdict, PassProgress, make_item_report
from assay.harness.judging.evidence_cache import EvidenceCache, UnjudgeableCheck
from assay.harness.judging.verdict import (
    CheckContext,
    convert_exception,
    find_pass_objection,
    find_phase_verdict,
    format_reason,
)
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome


class ItemWarnings:
    """A context around items that are judged in one call of the protocol; `item` is the one that is judged now.

    `any` says that there was a warning. pytest would show the same one once only of all that it catches together, so
    the items after it need a call of their own.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._hook = config.hook if config.pluginmanager.has_plugin("warnings") else None
        self.item: pytest.Item | None = None
        self.any = False

    def __enter__(self) -> ItemWarnings:
        self._was = warnings.showwarning
        if self._hook is not None:
            warnings.showwarning = self._record_warning
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        warnings.showwarning = self._was

    def _record_warning(self, *about: Any, **more: Any) -> None:
        self.any = True
        told = {"warning_message": warnings.WarningMessage(*about, **more), "when": "runtest", "location": None}
        nodeid = self.item.nodeid if self.item is not None else ""
        assert self._hook is not None
        self._hook.pytest_warning_recorded.call_historic(kwargs={**told, "nodeid": nodeid})


ItemListener = Callable[[SlimItem, ItemVerdict], None]
SESSION_ENDING = (KeyboardInterrupt, pytest.exit.Exception)
"""What ends the session and is no word on a check."""
UNSUPPORTED_MARKS = {"skip", "skipif", "xfail", "usefixtures", "flaky"}


class SlimItemProtocol:
    """The hooks that run slim items by the evidence on `shelf`. `take` is given each outcome with its trial."""

    def __init__(
        self, config: pytest.Config, shelf: EvidenceCache, take: Callable[[Outcome, CheckContext], None]
    ) -> None:
        self._shelf, self._take, self._hook = shelf, take, config.hook
        self._out = None if config.getoption("capture") == "no" else io.StringIO()
        self._neighbours: Sequence[SlimItem] = ()
        self._tell: ItemListener = self._report
        self.judged = 0

    def judge_neighbours(self, items: Sequence[SlimItem], tell: ItemListener | None) -> None:
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
        with ItemWarnings(session.config) as warned:
            for self.judged, item in enumerate(items, 1):
                warned.item = item
                self._judge(item, items[self.judged] if self.judged < len(items) else nextitem)
                if warned.any or session.shouldfail or session.shouldstop:
                    return

    def _judge(self, item: SlimItem, nextitem: pytest.Item | None) -> None:
        marks = item.check.marks
        trial = CheckContext(
            item.check.id, item.subject, item.whose, self._shelf, marks.phases, marks.fault, marks.active
        )
        judged = judge_item(item, trial, self._out)
        self._take(trial.make_outcome(judged.verdict, judged.reason, judged.duration_s), trial)
        self._tell(item, judged)
        if nextitem is None:
            self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if item.session._setupstate.stack:
            tear_down_leftovers(item, nextitem)

    def _report(self, item: SlimItem, judged: ItemVerdict) -> None:
        self._hook.pytest_runtest_logreport(report=make_item_report(item, judged))


def judge_item(item: SlimItem, trial: CheckContext, out: io.StringIO | None) -> ItemVerdict:
    """Call the check and return its verdict by the rules of suites. What it prints goes to `out`, if there is one."""
    when: ItemPhase = "setup"
    start, began = time.time(), time.perf_counter()
    was = sys.stdout, sys.stderr
    if out is not None:
        sys.stdout = sys.stderr = out
    try:
        if item.own_markers is not item.check.own_markers:
            refuse_added_marks(item.added_marks)
        arguments = item.check.recipe.make_arguments(trial)
        when = "call"
        item.check.function(**arguments)
        error = find_pass_objection(trial)
    except SESSION_ENDING:
        raise
    except BaseException as raised:  # SystemExit too: a check that exits has not passed
        error = convert_exception(raised).with_traceback(
            None
        )  # which would hold on to all that this check has looked at
    finally:
        sys.stdout, sys.stderr = was
    duration, printed = time.perf_counter() - began, take_output(out)
    if error is None:
        return ItemVerdict("pass", "", when, start, duration, printed)
    return ItemVerdict(find_phase_verdict(error, when), format_reason(error), when, start, duration, printed)


def refuse_added_marks(added: list[str]) -> None:
    """Refuse what a slim item cannot do. Raises Unjudgeable for a mark that was added to the item alone."""
    if acted_on := [name for name in added if name in UNSUPPORTED_MARKS]:
        raise UnjudgeableCheck(f"was marked {acted_on[0]} after it was collected; mark the function instead")


def take_output(out: io.StringIO | None) -> str:
    """Return what was printed, and make room for the next."""
    if out is None or not out.tell():
        return ""
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text


def tear_down_leftovers(item: SlimItem, nextitem: pytest.Item | None) -> None:
    """Tear down what ordinary items have left standing for a neighbour that turned out to be slim.

    pytest does this in an item's own teardown, which slim items do not have. What goes wrong there is reported.
    """
    standing = item.session._setupstate
    call = pytest.CallInfo.from_call(lambda: standing.teardown_exact(nextitem), "teardown", SESSION_ENDING)
    if call.excinfo is not None:
        judged = ItemVerdict("error", format_reason(call.excinfo.value), "teardown", call.start, call.duration)
        item.config.hook.pytest_runtest_logreport(report=make_item_report(item, judged))


WATCHED_HOOKS = ("pytest_runtest_protocol", "pytest_runtestloop", "pytest_assertion_pass")
"""Hooks that say something of one item, or run the items otherwise (as xdist's workers do)."""

GC_THRESHOLD = 100_000
"""Objects that are made before the collector looks for circles among them; else it would at each document."""


class SuiteLoop:
    """The loop of one session. `protocol` judges."""

    def __init__(self, protocol: SlimItemProtocol) -> None:
        self._protocol = protocol

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all items as pytest does, or leave that to it."""
        going_on = not session.testsfailed or session.config.option.continue_on_collection_errors
        if session.config.option.collectonly or not going_on or not has_no_other_plugins(session.config):
            return None
        dots = PassProgress.for_session(session.config)
        try:
            with rare_garbage_collection():
                self._run(session, dots)
        finally:
            if dots is not None:
                dots.show()
        return True

    def _run(self, session: pytest.Session, dots: PassProgress | None) -> None:
        items, at = session.items, 0
        while at < len(items):
            neighbours = find_neighbours(items, at)
            if dots is not None and not neighbours:
                dots.show()
            self._protocol.judge_neighbours(neighbours, dots)
            after = at + max(1, len(neighbours))
            nextitem = items[after] if after < len(items) else None
            session.config.hook.pytest_runtest_protocol(item=items[at], nextitem=nextitem)
            at += self._protocol.judged
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Let garbage in circles wait for more of it: judging leaves next to none, and reading evidence makes none."""
    was = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, *was[1:])
    try:
        yield
    finally:
        gc.set_threshold(*was)


def has_no_other_plugins(config: pytest.Config) -> bool:
    """Return whether nobody but pytest and these suites has a part in how an item is run."""
    found = [one.function for name in WATCHED_HOOKS for one in getattr(config.hook, name).get_hookimpls()]
    return not _has_item_deadline(config) and all(one.__module__.partition(".")[0] in OWN_PACKAGES for one in found)


def _has_item_deadline(config: pytest.Config) -> bool:
    """Return whether pytest would dump the stack of an item that takes long (`faulthandler_timeout`)."""
    return config.pluginmanager.has_plugin("faulthandler") and float(config.getini("faulthandler_timeout") or 0) > 0


def find_neighbours(items: Sequence[pytest.Item], at: int) -> list[SlimItem]:
    """Return the slim items of one node that begin at `at`; none where another item stands there."""
    first, end = items[at], at
    if not isinstance(first, SlimItem):
        return []
    while end < len(items) and _is_neighbour(first, items[end]):
        end += 1
    return cast("list[SlimItem]", items[at : max(end, at + 1)])


def _is_neighbour(first: SlimItem, item: pytest.Item) -> bool:
    """Return whether an item is slim too, and whether the same hooks say the same of both."""
    return (
        isinstance(item, SlimItem)
        and item.whose == first.whose
        and item.ihook is first.ihook
        and not item.added_marks
        and not first.added_marks
    )


def sort_items_by_node(items: list[pytest.Item], fleet: Fleet) -> None:
    """Put slim items first, those of one node or rack together, in the order of the fleet."""
    if len(items) < 2:
        return
    places = {name: at for at, name in enumerate(fleet.nodes)}
    last = len(places)

    @cache
    def racks() -> dict[str, int]:
        return {f"{node.pool}/rack-{node.rack}": places[node.name] for node in fleet.nodes.values()}

    def place(item: pytest.Item) -> int:
        if not isinstance(item, SlimItem):
            return last + 1
        return places[item.whose] if item.whose else racks().get(str(item.subject), last)

    items.sort(key=place)
