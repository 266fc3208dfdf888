"""Opens the modules of the suites in a session that stores outcomes: one that fails costs its own checks only."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest

from assay.validate.items.terminal_report import find_collection_error
from assay.validate.judging.session_outcome_file import OutcomeDelivery


class ModuleCollection:
    """The hook around the import of each module. `name_module` returns its name, "" for one of other suites."""

    def __init__(self, delivery: OutcomeDelivery, name_module: Callable[[pytest.Collector], str]) -> None:
        self._delivery, self._name_module = delivery, name_module

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Note which module is imported, and store why one was not."""
        name = self._name_module(collector) if isinstance(collector, pytest.Module) else ""
        if not name:
            return (yield)
        current = self._delivery.current
        if current is not None:
            current.begin(name)
        report = yield
        if current is not None:
            current.end()
        if report.outcome != "passed":
            self._delivery.add_unjudged(name, f"{name} cannot be imported: {find_collection_error(report)}")
        return report

    @pytest.hookimpl(specname="pytest_make_collect_report", tryfirst=True)
    def pytest_skip_crashed(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Import no module again that has crashed its process."""
        name = self._name_module(collector) if isinstance(collector, pytest.Module) else ""
        if name and self._delivery.unjudged.find(name):
            return pytest.CollectReport(collector.nodeid, "passed", None, [])
        return None
