"""Passes in the terminal: counted and shown as pytest's own reporter does, many in one go."""

from __future__ import annotations

import pytest

from assay.harness.reported import Judged, Passes, report
from assay.harness.slim import SlimItem

OWN = frozenset({"_pytest", "assay"})
LINGER_S = 0.2
"""No pass waits longer than this for the next to be shown with it."""
SILENT = ("session", "terminalreporter", "logging-plugin")
"""Plugins that do nothing about a pass but what is done here; the last only where logs are shown as they come."""


class Dots:
    """Is told of items. Passes are counted, and `show` brings the terminal up to date; all else is for pytest's hook.

    Others who listen for reports get those of passes too, and at once.
    """

    def __init__(self, config: pytest.Config, reporter: pytest.TerminalReporter) -> None:
        manager = config.pluginmanager
        silent = [manager.get_plugin(name) for name in SILENT]
        others = manager.subset_hook_caller("pytest_runtest_logreport", [one for one in silent if one is not None])
        self._others = others if others.get_hookimpls() else None
        self._reporter, self._hook = reporter, config.hook
        self._passes = Passes()
        self._waiting: list[SlimItem] = []
        self._room, self._due = self._left_of_the_line(), 0.0

    @classmethod
    def of(cls, config: pytest.Config) -> Dots | None:
        """Return what counts passes in this session, None where something else than dots is asked for."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if type(reporter) is not pytest.TerminalReporter or reporter._show_progress_info == "times":
            return None
        status = config.hook.pytest_report_teststatus.get_hookimpls()
        foreign = [one for one in status if one.function.__module__.partition(".")[0] not in OWN]
        wordy = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0
        return None if foreign or wordy or _shows_logs(config) else cls(config, reporter)

    def __call__(self, item: SlimItem, judged: Judged) -> None:
        """Tell of an item."""
        if judged.verdict != "pass":
            self.show()
            self._hook.pytest_runtest_logreport(report=report(item, judged))
            return
        if self._others is not None:
            self._others(report=report(item, judged))
        self._passes.take(item, judged)
        self._waiting.append(item)
        if len(self._waiting) >= self._room or judged.start > self._due:
            self.show()
            self._due = judged.start + LINGER_S

    def show(self) -> None:
        """Show what was counted, and how far that is where a line ends."""
        reporter, waiting = self._reporter, self._waiting
        if waiting:
            reporter._tests_ran = True
            reporter._progress_nodeids_reported.update(waiting)  # type: ignore[arg-type]  # only counted there
            self._keep()
            reporter.write("." * len(waiting), green=True)
            if reporter._show_progress_info and not reporter._is_last_item:
                reporter._write_progress_information_if_past_edge()
            reporter.flush()
            waiting.clear()
        self._room = self._left_of_the_line()

    def _keep(self) -> None:
        stats, passes = self._reporter.stats, self._passes
        if stats.get("passed") is not passes:
            passes.extend(stats.get("passed", ()))
            stats["passed"] = passes
            self._reporter._set_main_color()

    def _left_of_the_line(self) -> int:
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
