"""What came of a slim item, and the one report that pytest and its plugins get of it.

How checks that did not pass are told in the terminal: one line each, no tracebacks unless asked for.

Passes in the terminal: counted and shown as pytest's own reporter does, many in one go.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pytest

from assay.harness.items.slim_items import SlimItem
from assay.model.outcome import CheckVerdict, Outcome


@dataclass(frozen=True)
class FailureLocation:
    """Where and why, as `--tb=line` and pytest's short summary print it."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


class OneLineFailure:
    """One line in place of a traceback, in the form that pytest expects of a report's `longrepr`."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.reprcrash = FailureLocation(path, line, reason)

    def toterminal(self, tw: Any) -> None:
        """Write the line."""
        tw.line(self.reprcrash.message)

    def __str__(self) -> str:
        return self.reprcrash.message


def is_one_line_output(config: pytest.Config) -> bool:
    """Return whether one line each is what the user gets: neither -v nor --tb was given."""
    return bool(config.option.verbose <= 0 and config.option.tbstyle == "auto")


def suppress_tracebacks(config: pytest.Config) -> None:
    """Leave failures to `print_problems`, so that each is printed once."""
    config.option.tbstyle = "no"
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.reportchars = ""


def print_problems(reporter: pytest.TerminalReporter, outcomes: list[Outcome]) -> None:
    """Print what could not be collected, and what did not pass."""
    colours = {"fail": {"red": True}, "error": {"yellow": True}, "skip": {}}
    told = format_problem_lines(outcomes)
    broken = [report for report in reporter.stats.get("error", []) if isinstance(report, pytest.CollectReport)]
    if told or broken:
        reporter.write_line("")
    for report in broken:
        said = [line for line in report.longreprtext.splitlines() if line.startswith("E ")] or [report.longreprtext]
        reporter.write_line(f"ERROR {report.nodeid}  {said[-1].removeprefix('E').strip()}", red=True)
    for verdict, line in told:
        reporter.write_line(line, **colours[verdict])


def format_problem_lines(outcomes: Iterable[Outcome]) -> list[tuple[str, str]]:
    """Return (verdict, line) for all that is no pass: what, where, why. What one cause did to a node is one line."""
    causes: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        alone = outcome.subject if outcome.verdict == "fail" else outcome.node or outcome.subject
        causes.setdefault((outcome.verdict, alone, outcome.reason + _excuse_note(outcome)), []).append(outcome)
    return [
        (verdict, _problem_line(verdict, same, reason))
        for wanted in ("fail", "error", "skip")
        for (verdict, _, reason), same in causes.items()
        if verdict == wanted
    ]


def _excuse_note(outcome: Outcome) -> str:
    """Return what is said of one that decides nothing."""
    known = f"  (known: {outcome.known})" if outcome.known else ""
    return f"{known}  (observed only)" if outcome.observed else known


def _problem_line(verdict: str, same: list[Outcome], reason: str) -> str:
    subjects, checks = list({one.subject for one in same}), {one.check.removeprefix("suites/") for one in same}
    subject = subjects[0] if len(subjects) == 1 else "/".join(subjects[0].split("/")[:2])
    what = checks.pop() if len(same) == 1 else f"{len(same)} outcomes"
    return f"{verdict:<5} {subject:<18} {what}  {reason}"


ItemPhase = Literal["setup", "call", "teardown"]
PYTEST_OUTCOMES: dict[CheckVerdict, Literal["passed", "failed", "skipped"]] = {
    "pass": "passed",
    "fail": "failed",
    "error": "failed",
    "skip": "skipped",
}


class ItemVerdict(NamedTuple):
    """What came of one item. `when` says how far it came: its arguments were made, or the check was called."""

    verdict: CheckVerdict
    reason: str
    when: ItemPhase
    start: float
    duration_s: float
    printed: str = ""


def make_item_report(item: SlimItem, judged: ItemVerdict) -> pytest.TestReport:
    """Return the one report: of a failure or an error one line, of a skip where and why."""
    result = PYTEST_OUTCOMES[judged.verdict]
    told: OneLineFailure | tuple[str, int, str] | None = None
    if result == "failed":
        told = OneLineFailure(str(item.path), item.check.line, judged.reason)
    elif result == "skipped":
        told = (str(item.path), item.check.line + 1, f"Skipped: {judged.reason}")
    return pytest.TestReport(
        nodeid=item.id,  # as it is taken apart already
        location=item.location,
        keywords=item.check.keywords,
        outcome=result,
        longrepr=told,  # type: ignore[arg-type]  # `OneLineFailure` has the form that pytest expects
        when=judged.when,
        sections=[("Captured output", judged.printed)] if judged.printed else (),
        duration=judged.duration_s,
        start=judged.start,
        stop=judged.start + judged.duration_s,
        verdict=judged.verdict,  # read by pytest_report_teststatus, also after a trip through xdist
    )


class LazyPassReport:
    """The report of a pass, which is made when somebody looks at more of it than how long it took."""

    __slots__ = ("_item", "_start", "duration")
    count_towards_summary = True

    def __init__(self, item: SlimItem, start: float, duration: float) -> None:
        self._item, self._start, self.duration = item, start, duration

    def __getattr__(self, name: str) -> Any:
        """Return what the report would have, `__dict__` too: that is where plugins look for what they left there."""
        if name.startswith("_") and name != "__dict__":
            raise AttributeError(name)
        return getattr(make_item_report(self._item, ItemVerdict("pass", "", "call", self._start, self.duration)), name)


class PassReports(list[Any]):
    """The reports that the terminal keeps of what passed; there are none of slim items before somebody looks at them.

    So a session of many passes stays small, and its garbage is collected soon.
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: list[SlimItem] = []
        self._starts, self._durations = array("d"), array("d")

    def add(self, item: SlimItem, judged: ItemVerdict) -> None:
        """Take a pass."""
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


OWN_PACKAGES = frozenset({"_pytest", "assay"})
MAX_DISPLAY_DELAY_S = 0.2
"""No pass waits longer than this for the next to be shown with it."""
PASSIVE_PLUGINS = ("session", "terminalreporter", "logging-plugin")
"""Plugins that do nothing about a pass but what is done here; the last only where logs are shown as they come."""


class PassProgress:
    """Is told of items. Passes are counted, and `show` brings the terminal up to date; all else is for pytest's hook.

    Others who listen for reports get those of passes too, and at once.
    """

    def __init__(self, config: pytest.Config, reporter: pytest.TerminalReporter) -> None:
        manager = config.pluginmanager
        silent = [manager.get_plugin(name) for name in PASSIVE_PLUGINS]
        others = manager.subset_hook_caller("pytest_runtest_logreport", [one for one in silent if one is not None])
        self._others = others if others.get_hookimpls() else None
        self._reporter, self._hook = reporter, config.hook
        self._passes = PassReports()
        self._waiting: list[SlimItem] = []
        self._columns_left, self._due = self._count_columns_left(), 0.0

    @classmethod
    def for_session(cls, config: pytest.Config) -> PassProgress | None:
        """Return what counts passes in this session, None where something else than dots is asked for."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if type(reporter) is not pytest.TerminalReporter or reporter._show_progress_info == "times":
            return None
        status = config.hook.pytest_report_teststatus.get_hookimpls()
        foreign = [one for one in status if one.function.__module__.partition(".")[0] not in OWN_PACKAGES]
        wordy = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0
        return None if foreign or wordy or _shows_logs(config) else cls(config, reporter)

    def __call__(self, item: SlimItem, judged: ItemVerdict) -> None:
        """Tell of an item."""
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
        """Show what was counted, and how far that is where a line ends."""
        reporter, waiting = self._reporter, self._waiting
        if waiting:
            reporter._tests_ran = True
            reporter._progress_nodeids_reported.update(waiting)  # type: ignore[arg-type]  # only counted there
            self._add_to_terminal_stats()
            reporter.write("." * len(waiting), green=True)
            if reporter._show_progress_info and not reporter._is_last_item:
                reporter._write_progress_information_if_past_edge()
            reporter.flush()
            waiting.clear()
        self._columns_left = self._count_columns_left()

    def _add_to_terminal_stats(self) -> None:
        stats, passes = self._reporter.stats, self._passes
        if stats.get("passed") is not passes:
            passes.extend(stats.get("passed", ()))
            stats["passed"] = passes
            self._reporter._set_main_color()

    def _count_columns_left(self) -> int:
        """Return after how many dots pytest writes how far it is; where it does not, the line goes on and on."""
        reporter = self._reporter
        if not reporter._show_progress_info:
            return reporter._screen_width
        message = reporter._get_progress_information_message() if reporter._show_progress_info == "count" else " [100%]"
        return max(1, reporter._screen_width - reporter._width_of_current_line - len(message) - 1)


def _shows_logs(config: pytest.Config) -> bool:
    if not config.pluginmanager.has_plugin("logging-plugin"):
        return False
    return bool(config.getini("log_cli")) or config.getoption("log_cli_level") is not None
