"""What pytest and the terminal show of slim items: one report each, passes as dots, problems as one line each."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pytest

from assay.model.outcome import CheckVerdict, Outcome, read_whole
from assay.validate.items.slim_items import SlimItem
from assay.validate.pytest_internals import IS_SILENT_KEY, TerminalDots, is_own_hook

ItemPhase = Literal["setup", "call", "teardown"]
PYTEST_OUTCOMES: dict[CheckVerdict, Literal["passed", "failed", "skipped"]] = {
    "pass": "passed",
    "fail": "failed",
    "error": "failed",
    "skip": "skipped",
}
MAX_DISPLAY_DELAY_S = 0.2
"""A pass waits no longer than this to be shown together with others."""
PASSIVE_PLUGINS = ("session", "terminalreporter", "logging-plugin")
"""Plugins that need no report of a pass: `PassProgress` does their part. The last acts only on live logs."""


class ItemVerdict(NamedTuple):
    """The result of one item. `when` is the phase that decided; `start` a Unix time; `printed` the check's output."""

    verdict: CheckVerdict
    reason: str
    when: ItemPhase
    start: float
    duration_s: float
    printed: str = ""


@dataclass(frozen=True)
class FailureLocation:
    """Place and message of a failure, as `--tb=line` and pytest's short summary print them."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


class OneLineFailure:
    """One line instead of a traceback, in the form that pytest expects of a report's `longrepr`."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.reprcrash = FailureLocation(path, line, reason)

    def toterminal(self, tw: Any) -> None:
        """Write the line to pytest's terminal writer."""
        tw.line(self.reprcrash.message)

    def __str__(self) -> str:
        return self.reprcrash.message


def make_item_report(item: SlimItem, judged: ItemVerdict) -> pytest.TestReport:
    """Return the one report of a slim item. Failures and errors carry one line, skips place and reason."""
    result = PYTEST_OUTCOMES[judged.verdict]
    longrepr: OneLineFailure | tuple[str, int, str] | None = None
    if result == "failed":
        longrepr = OneLineFailure(str(item.path), item.check.line, judged.reason)
    elif result == "skipped":
        longrepr = (str(item.path), item.check.line + 1, f"Skipped: {judged.reason}")
    return pytest.TestReport(
        nodeid=item.id,  # parsed already, which the report would do again
        location=item.location,
        keywords=item.check.keywords,
        outcome=result,
        longrepr=longrepr,  # type: ignore[arg-type]  # OneLineFailure has the form that pytest expects
        when=judged.when,
        sections=[("Captured output", judged.printed)] if judged.printed else (),
        duration=judged.duration_s,
        start=judged.start,
        stop=judged.start + judged.duration_s,
        verdict=judged.verdict,  # pytest_report_teststatus reads it, also from a report that xdist has sent
    )


def is_one_line_output(config: pytest.Config) -> bool:
    """Return whether each problem gets one line: neither -v nor --tb was given."""
    return bool(config.option.verbose <= 0 and config.option.tbstyle == "auto")


def suppress_tracebacks(config: pytest.Config) -> None:
    """Switch off pytest's own failure sections, since `print_problems` prints each problem. Warnings stay."""
    config.option.tbstyle = "no"
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.reportchars = "w" if "w" in reporter.reportchars else ""


def print_problems(reporter: pytest.TerminalReporter, outcomes: list[Outcome]) -> None:
    """Print the modules that could not be collected, then the outcomes that are no pass."""
    colours = {"fail": {"red": True}, "error": {"yellow": True}, "skip": {}}
    problems = format_problem_lines(outcomes)
    broken = [report for report in reporter.stats.get("error", []) if isinstance(report, pytest.CollectReport)]
    if problems or broken:
        reporter.write_line("")
    for report in broken:
        reporter.write_line(f"ERROR {report.nodeid}  {find_collection_error(report)}", red=True)
    for verdict, line in problems:
        reporter.write_line(line, **colours[verdict])


def print_not_due(reporter: pytest.TerminalReporter, not_due: Counter[str]) -> None:
    """Print how many checks were not due, by the part that is not there, or the evidence that nobody collected."""
    if counted := +not_due:
        reasons = ", ".join(f"{count} ({missing})" for missing, count in sorted(counted.items()))
        reporter.write_line(f"not due: {reasons}; with --assay-phase, a phase asks for its loads and scans")


def find_collection_error(report: pytest.CollectReport) -> str:
    """Return in one line why a module could not be collected."""
    if isinstance(report.longrepr, tuple):  # it was skipped
        return str(report.longrepr[2])
    lines = [line for line in report.longreprtext.splitlines() if line.startswith("E ")] or [report.longreprtext]
    return lines[-1].removeprefix("E").strip()


def format_problem_lines(outcomes: Iterable[Outcome]) -> list[tuple[str, str]]:
    """Return (verdict, line) for outcomes that are no pass, failures first.

    Equal failures of one subject share a line; so do errors and skips of one node that have the same reason.
    """
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        group = outcome.subject if outcome.verdict == "fail" else outcome.node or outcome.subject
        known = f"  (known: {outcome.known})" if outcome.known else ""
        excuse = f"{known}  (observed only)" if outcome.observed else known
        groups.setdefault((outcome.verdict, group, outcome.reason + excuse), []).append(outcome)
    return [
        (verdict, _problem_line(verdict, alike, reason))
        for shown in ("fail", "error", "skip")
        for (verdict, _, reason), alike in groups.items()
        if verdict == shown
    ]


def _problem_line(verdict: str, alike: list[Outcome], reason: str) -> str:
    subjects = list({outcome.subject for outcome in alike})
    checks = {outcome.check.removeprefix("suites/") for outcome in alike}
    subject = subjects[0] if len(subjects) == 1 else read_whole(subjects[0])
    shown = checks.pop() if len(alike) == 1 else f"{len(alike)} outcomes"
    return f"{verdict:<5} {subject:<18} {shown}  {reason}"


class LazyPassReport:
    """The report of a pass, made when something reads more of it than its duration."""

    __slots__ = ("_item", "_start", "duration")
    count_towards_summary = True

    def __init__(self, item: SlimItem, start: float, duration: float) -> None:
        self._item = item
        self._start = start
        self.duration = duration

    def __getattr__(self, name: str) -> Any:
        """Return the real report's attribute; `__dict__` too, where plugins look for values that they stored."""
        if name.startswith("_") and name != "__dict__":
            raise AttributeError(name)
        return getattr(make_item_report(self._item, ItemVerdict("pass", "", "call", self._start, self.duration)), name)


class PassReports(list[Any]):
    """The list of passes that pytest's reporter holds; reports of slim items are made when it is iterated.

    A session with many passes stays small that way.
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: list[SlimItem] = []
        self._starts, self._durations = array("d"), array("d")

    def add(self, item: SlimItem, judged: ItemVerdict) -> None:
        """Add a pass."""
        self._items.append(item)
        self._starts.append(judged.start)
        self._durations.append(judged.duration_s)

    def __len__(self) -> int:
        return super().__len__() + len(self._items)

    def __iter__(self) -> Iterator[Any]:
        yield from super().__iter__()
        yield from map(LazyPassReport, self._items, self._starts, self._durations)

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]


class PassProgress:
    """Listens to slim items: it counts passes and shows them together, and hands every other result to pytest's hook.

    Plugins that listen for reports receive those of passes too, at once.
    """

    def __init__(self, config: pytest.Config, reporter: pytest.TerminalReporter) -> None:
        manager = config.pluginmanager
        passive = [plugin for name in PASSIVE_PLUGINS if (plugin := manager.get_plugin(name)) is not None]
        others = manager.subset_hook_caller("pytest_runtest_logreport", passive)
        self._others = others if others.get_hookimpls() else None
        self._dots, self._hook = TerminalDots(reporter, is_silent=config.stash.get(IS_SILENT_KEY, False)), config.hook
        self._passes = PassReports()
        self._waiting: list[SlimItem] = []
        self._columns_left, self._due = self._dots.count_columns_left(), 0.0

    @classmethod
    def for_session(cls, config: pytest.Config) -> PassProgress | None:
        """Return the listener of this session, None where passes must be shown by other means than dots."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not TerminalDots.is_possible(reporter):
            return None
        status_hooks = config.hook.pytest_report_teststatus.get_hookimpls()
        is_verbose = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0
        has_foreign_status = not all(is_own_hook(hook.function) for hook in status_hooks)
        shows_logs = config.pluginmanager.has_plugin("logging-plugin") and (
            bool(config.getini("log_cli")) or config.getoption("log_cli_level") is not None
        )
        return None if has_foreign_status or is_verbose or shows_logs else cls(config, reporter)

    def __call__(self, item: SlimItem, judged: ItemVerdict) -> None:
        """Take the result of one item."""
        if judged.verdict != "pass":
            self.show()
            self._hook.pytest_runtest_logreport(report=make_item_report(item, judged))
            return
        if self._others is not None:
            self._others(report=make_item_report(item, judged))
        self._passes.add(item, judged)
        self._waiting.append(item)
        if len(self._waiting) >= self._columns_left or judged.start > self._due:
            self.show()
            self._due = judged.start + MAX_DISPLAY_DELAY_S

    def show(self) -> None:
        """Write a dot for each pass that waits, and the progress where a line ends."""
        if self._waiting:
            self._dots.write(self._waiting, self._passes)
            self._waiting.clear()
        self._columns_left = self._dots.count_columns_left()
