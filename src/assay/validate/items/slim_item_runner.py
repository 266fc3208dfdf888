"""Runs slim items: one call of the check, one outcome, one report, inside pytest's own hooks.

Items of one node form a batch, which is one call of `pytest_runtest_protocol`. What wraps the protocol (warnings,
assertion comparison) then runs once a batch, which is most of what pytest's own loop would cost. Where a plugin or
conftest has a hook around single items, pytest's loop runs every item.
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

from assay.model.fleet import Fleet
from assay.model.outcome import Outcome
from assay.validate.items.slim_items import SlimItem
from assay.validate.items.terminal_report import ItemPhase, ItemVerdict, PassProgress, make_item_report
from assay.validate.judging.evidence_cache import EvidenceCache, UnjudgeableCheck
from assay.validate.judging.unjudged_checks import CurrentCheck
from assay.validate.judging.verdict import (
    RETURN_REASON,
    CheckContext,
    convert_exception,
    find_pass_objection,
    find_phase_verdict,
    format_reason,
)
from assay.validate.pytest_internals import has_setup_left, is_own_hook, tear_down_until

ItemListener = Callable[[SlimItem, ItemVerdict], None]
SESSION_ENDING = (KeyboardInterrupt, pytest.exit.Exception)
"""Exceptions that end the session and give no verdict on a check."""
UNSUPPORTED_MARKS = {"skip", "skipif", "xfail", "usefixtures", "flaky"}
WATCHED_HOOKS = ("pytest_runtest_protocol", "pytest_runtestloop", "pytest_assertion_pass")
"""Hooks that act on a single item, or that run the items in another way (as xdist's workers do)."""
GC_THRESHOLD = 100_000
"""Allocations before a garbage collection; with Python's default there is one for each evidence document."""


class SuiteLoop:
    """The loop of one session: it cuts the items into batches for `protocol`."""

    def __init__(self, protocol: SlimItemProtocol) -> None:
        self._protocol = protocol

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all items in batches, or leave them to pytest's own loop."""
        goes_on = not session.testsfailed or session.config.option.continue_on_collection_errors
        if session.config.option.collectonly or not goes_on or not has_no_other_plugins(session.config):
            return None
        progress = PassProgress.for_session(session.config)
        try:
            with rare_garbage_collection():
                self._run(session, progress)
        finally:
            if progress is not None:
                progress.show()
        return True

    def _run(self, session: pytest.Session, progress: PassProgress | None) -> None:
        items, at = session.items, 0
        while at < len(items):
            batch = find_batch(items, at)
            if progress is not None and not batch:
                progress.show()
            self._protocol.set_batch(batch, progress)
            after = at + max(1, len(batch))
            nextitem = items[after] if after < len(items) else None
            session.config.hook.pytest_runtest_protocol(item=items[at], nextitem=nextitem)
            at += self._protocol.judged_count
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


class SlimItemProtocol:
    """The hook that judges slim items on the evidence in `evidence_cache`.

    `take_outcome` receives each outcome with the context that it was judged in. `current` notes what is judged.
    """

    def __init__(
        self,
        config: pytest.Config,
        evidence_cache: EvidenceCache,
        take_outcome: Callable[[Outcome, CheckContext], None],
        current: CurrentCheck | None,
    ) -> None:
        self._evidence_cache = evidence_cache
        self._take_outcome = take_outcome
        self._hook = config.hook
        self._current = current
        self._output = None if config.getoption("capture") == "no" else io.StringIO()
        self._batch: Sequence[SlimItem] = ()
        self._listener: ItemListener = self._report
        self.judged_count = 0

    def set_batch(self, items: Sequence[SlimItem], listener: ItemListener | None) -> None:
        """Let the next call of the hook judge all these items, each reported to `listener` (default: pytest's hook).

        `judged_count` then says how many were judged: fewer, where the session must stop or pytest must see a warning.
        """
        self._batch, self._listener = items, listener or self._report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Judge and report a slim item, or its batch; leave every other item to pytest."""
        self.judged_count = 1
        if not isinstance(item, SlimItem):
            return None
        if self._batch:
            self._judge_batch(item.session, nextitem)
        else:
            self._judge(item, nextitem)
        return True

    def _judge_batch(self, session: pytest.Session, nextitem: pytest.Item | None) -> None:
        items, self._batch = self._batch, ()
        with ItemWarnings(session.config) as item_warnings:
            for self.judged_count, item in enumerate(items, 1):
                item_warnings.item = item
                self._judge(item, items[self.judged_count] if self.judged_count < len(items) else nextitem)
                if item_warnings.has_any or session.shouldfail or session.shouldstop:
                    return

    def _judge(self, item: SlimItem, nextitem: pytest.Item | None) -> None:
        marks = item.check.marks
        context = CheckContext(
            item.check.id, item.subject, item.node_name, self._evidence_cache, marks.phases, marks.fault, marks.active
        )
        if self._current is not None:
            self._current.begin(item.check.id, item.subject_id)
        judged = judge_item(item, context, self._output)
        if self._current is not None:
            self._current.end()
        self._take_outcome(context.make_outcome(judged.verdict, judged.reason, judged.duration_s), context)
        self._listener(item, judged)
        if nextitem is None:
            self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if has_setup_left(item.session):
            tear_down_leftovers(item, nextitem)

    def _report(self, item: SlimItem, judged: ItemVerdict) -> None:
        self._hook.pytest_runtest_logreport(report=make_item_report(item, judged))


def judge_item(item: SlimItem, context: CheckContext, output: io.StringIO | None) -> ItemVerdict:
    """Call the check and return its verdict by the rules of suites. `output` takes what it prints, None: nothing."""
    when: ItemPhase = "setup"
    start, start_counter = time.time(), time.perf_counter()
    streams = sys.stdout, sys.stderr
    if output is not None:
        sys.stdout = sys.stderr = output
    try:
        if item.own_markers is not item.check.own_markers:
            refuse_added_marks(item.added_marks)
        arguments = item.check.recipe.make_arguments(context)
        when = "call"
        returned = item.check.function(**arguments)
        error = find_pass_objection(context) if returned is None else UnjudgeableCheck(RETURN_REASON)
    except SESSION_ENDING:
        raise
    except BaseException as raised:  # SystemExit too: a check that exits has not passed
        # without the traceback, which would keep alive all objects that this check has read
        error = convert_exception(raised).with_traceback(None)
    finally:
        sys.stdout, sys.stderr = streams
    duration, printed = time.perf_counter() - start_counter, take_output(output)
    if error is None:
        return ItemVerdict("pass", "", when, start, duration, printed)
    return ItemVerdict(find_phase_verdict(error, when), format_reason(error), when, start, duration, printed)


def refuse_added_marks(added: list[str]) -> None:
    """Raise UnjudgeableCheck where a mark that slim items do not support was added to one item."""
    if unsupported := [name for name in added if name in UNSUPPORTED_MARKS]:
        raise UnjudgeableCheck(f"was marked {unsupported[0]} after it was collected; mark the function instead")


def take_output(output: io.StringIO | None) -> str:
    """Return what was printed, and empty the buffer."""
    if output is None or not output.tell():
        return ""
    text = output.getvalue()
    output.seek(0)
    output.truncate()
    return text


def tear_down_leftovers(item: SlimItem, nextitem: pytest.Item | None) -> None:
    """Tear down what ordinary items left set up for an item that turned out to be slim; report what fails there.

    pytest does this in an item's own teardown, which slim items do not have.
    """
    call = pytest.CallInfo.from_call(lambda: tear_down_until(item.session, nextitem), "teardown", SESSION_ENDING)
    if call.excinfo is not None:
        judged = ItemVerdict("error", format_reason(call.excinfo.value), "teardown", call.start, call.duration)
        item.config.hook.pytest_runtest_logreport(report=make_item_report(item, judged))


class ItemWarnings:
    """A context around a batch that reports each warning with the item (`item`) that gave it.

    pytest catches warnings per call of the protocol, and shows equal ones there once. So after a warning (`has_any`)
    the rest of the batch needs a call of its own.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._hook = config.hook if config.pluginmanager.has_plugin("warnings") else None
        self.item: pytest.Item | None = None
        self.has_any = False

    def __enter__(self) -> ItemWarnings:
        self._original = warnings.showwarning
        if self._hook is not None:
            warnings.showwarning = self._record_warning
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        warnings.showwarning = self._original

    def _record_warning(self, *arguments: Any, **options: Any) -> None:
        self.has_any = True
        assert self._hook is not None
        self._hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": warnings.WarningMessage(*arguments, **options),
                "when": "runtest",
                "nodeid": self.item.nodeid if self.item is not None else "",
                "location": None,
            }
        )


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely: judging leaves next to no reference cycles, and reading evidence makes none."""
    thresholds = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def has_no_other_plugins(config: pytest.Config) -> bool:
    """Return whether only pytest and assay have hooks around single items, and no item has a stack-dump deadline."""
    functions = [hook.function for name in WATCHED_HOOKS for hook in getattr(config.hook, name).get_hookimpls()]
    has_faulthandler = config.pluginmanager.has_plugin("faulthandler")
    dumps_stacks = has_faulthandler and float(config.getini("faulthandler_timeout") or 0) > 0
    return not dumps_stacks and all(map(is_own_hook, functions))


def find_batch(items: Sequence[pytest.Item], at: int) -> list[SlimItem]:
    """Return the slim items of one node from position `at` on; an empty list where the item there is not slim."""
    first, end = items[at], at
    if not isinstance(first, SlimItem):
        return []
    while end < len(items) and _belongs_to_batch(first, items[end]):
        end += 1
    return cast("list[SlimItem]", items[at : max(end, at + 1)])


def _belongs_to_batch(first: SlimItem, item: pytest.Item) -> bool:
    """Return whether an item is slim, of the same node, and seen by the same hooks with the same marks."""
    return (
        isinstance(item, SlimItem)
        and item.node_name == first.node_name
        and item.ihook is first.ihook
        and not item.added_marks
        and not first.added_marks
    )


def sort_items_by_node(items: list[pytest.Item], fleet: Fleet) -> None:
    """Put slim items first and group them by node or rack, in fleet order, so that evidence is read once."""
    if len(items) < 2:
        return
    places = {name: at for at, name in enumerate(fleet.nodes)}
    last = len(places)

    @cache
    def rack_places() -> dict[str, int]:
        return {f"{node.pool}/rack-{node.rack}": places[node.name] for node in fleet.nodes.values()}

    def place(item: pytest.Item) -> int:
        if not isinstance(item, SlimItem):
            return last + 1
        return places[item.node_name] if item.node_name else rack_places().get(str(item.subject), last)

    items.sort(key=place)
