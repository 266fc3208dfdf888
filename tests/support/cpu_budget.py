"""Says which files of tests cost more CPU time than `make test` can afford: one line each, and none where all is well.

A budget in CPU time holds on any machine: how long a test takes depends on what else runs there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tests.support.forked_assay import measure_importer_s

MAX_FILE_S = 12.0
"""CPU seconds of one file, its child processes included. CONTRIBUTING.md says so too."""
WORKER_RESULT = "cpu_s_by_file"


class CpuBudget:
    """A plugin that measures each file, also in workers of xdist, and reports those beyond the budget."""

    def __init__(self, max_file_s: float = MAX_FILE_S) -> None:
        self._max_file_s = max_file_s
        self._spent_s: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before_s = _measure_s()
        try:
            return (yield)
        finally:
            self._spent_s[item.location[0]] += _measure_s() - before_s

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[WORKER_RESULT] = dict(self._spent_s)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._spent_s.update(getattr(node, "workeroutput", {}).get(WORKER_RESULT, {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for file, spent_s in self._spent_s.most_common():
            if spent_s > self._max_file_s:
                terminalreporter.write_line(
                    f"{file} took {spent_s:.0f} s of CPU time; a file has {self._max_file_s:g} s."
                    " Make it cheaper, or mark what is dear as slow: see CONTRIBUTING.md"
                )


def _measure_s() -> float:
    """Return the CPU time of this process, of its children that have ended, and of the commands that were forked."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system + measure_importer_s()
