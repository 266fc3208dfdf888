"""Makes the items of a check: slim ones where it only judges evidence, else it leaves them to pytest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from assay.harness.fixtures.check_fixtures import CheckFixtures
from assay.harness.items import ordinary_items, terminal_report
from assay.harness.items.slim_items import FixtureBinding, SlimCheck, SlimItem
from assay.harness.markers import CheckMarks
from assay.harness.plugin import CHECK_MARKERS
from assay.harness.selection.command_line_selection import read_parameters
from assay.harness.selection.selected_subjects import NamedSubject
from assay.model.outcome import CheckSubject

OWN_MARKS = frozenset(line.partition(":")[0].partition("(")[0] for line in CHECK_MARKERS)
"""Marks that pytest and its plugins do nothing about. Whatever another asks for, only an ordinary item does it."""
DEBUG_OPTIONS = ("usepdb", "trace", "setupshow", "setuponly", "setupplan", "ordinary_items")
"""Options that look into what a slim item does not have: phases, fixtures, a traceback."""
NO_SUBJECT = NamedSubject(CheckSubject("", ""), "", "")


def wants_slim_items(config: pytest.Config) -> bool:
    """Return whether slim items do: nobody wants tracebacks (-v, --tb), a debugger, fixtures or Allure's files."""
    looking = any(config.getoption(option, default=False) for option in DEBUG_OPTIONS)
    return terminal_report.is_one_line_output(config) and not ordinary_items.is_allure_requested(config) and not looking


class ItemFactory:
    """Makes items in one session; `slim`: slim ones of checks that only judge evidence."""

    def __init__(self, fixtures: CheckFixtures, *, slim: bool) -> None:
        self._fixtures, self._given, self.slim = fixtures, FixtureBinding(fixtures), slim

    def describe_check(self, name: str, function: Any, module: pytest.Collector) -> SlimCheck:
        """Return what the items of a test function have in common. `name` is the check's id."""
        own: list[pytest.Mark] = list(getattr(function, "pytestmark", []))
        marks = CheckMarks.of_function(function, module)
        return SlimCheck(name, function, marks, own, module.nodeid, module.ihook)

    def is_slim_check(self, check: SlimCheck, module: pytest.Collector) -> bool:
        """Return whether a check only judges evidence: plain, with arguments, marks and fixtures of ours alone.

        Then it has one item per subject, whose name ends with the subject's id.
        """
        if not isinstance(module, pytest.Module) or not _is_plain(check.function):
            return False
        marks = {mark.name for mark in (*check.own_markers, *module.iter_markers())}
        return (
            marks <= OWN_MARKS
            and self._given.knows(_arguments(check.function))
            and not hasattr(module.obj, "pytest_generate_tests")
            and self._uses_own_fixtures(check.function, module)
        )

    def make_example(self, check: SlimCheck, module: pytest.Collector) -> SlimItem:
        """Return an item without a subject, for `Narrow`."""
        return _item(check, module, f"{check.name}[", NO_SUBJECT)

    def make_items(
        self, check: SlimCheck, module: pytest.Collector, subjects: Iterable[NamedSubject]
    ) -> list[pytest.Item]:
        """Return a slim item for each subject."""
        check.recipe = self._given.recipe(_arguments(check.function))
        check.keywords = dict.fromkeys((check.name, *module.keywords, *(mark.name for mark in check.own_markers)), 1)
        return [_item(check, module, f"{check.name}[{one.id}]", one) for one in subjects]

    def _uses_own_fixtures(self, function: Callable[..., Any], module: pytest.Module) -> bool:
        """Return whether pytest would use our fixtures, and no other: none is overridden, none is automatic."""
        manager = module.session._fixturemanager
        found = manager.getfixtureinfo(module, function, None)  # type: ignore[arg-type]  # it asks for names and marks
        used = {name: fixtures[-1].func for name, fixtures in found.name2fixturedefs.items() if name != "request"}
        return all(getattr(function, "__self__", None) is self._fixtures for function in used.values())


def _item(check: SlimCheck, module: pytest.Collector, name: str, of: NamedSubject) -> SlimItem:
    item: SlimItem = SlimItem.from_parent(module, name=name, check=check, subject=of.subject, whose=of.node)
    return item


def _arguments(function: Callable[..., Any]) -> list[str]:
    return list(read_parameters(function))


def _is_plain(function: Any) -> bool:
    """Return whether a function is called with its arguments, returns, and that is that."""
    special = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if (
        not inspect.isfunction(function)
        or hasattr(function, "__wrapped__")
        or any(is_so(function) for is_so in special)
    ):
        return False
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return all(one.kind in named and one.default is one.empty for one in read_parameters(function).values())
