"""Makes the items of a check: slim ones where it only judges evidence, else it leaves them to pytest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from assay.model.outcome import CheckSubject
from assay.validate.fixtures.check_fixtures import CheckFixtures
from assay.validate.items import ordinary_items, terminal_report
from assay.validate.items.slim_items import FixtureBinding, SlimCheck, SlimItem
from assay.validate.markers import CHECK_MARKERS, CheckMarks
from assay.validate.pytest_internals import find_fixture_functions
from assay.validate.runs.command_line_selection import read_parameters
from assay.validate.runs.selected_subjects import NamedSubject

OWN_MARKS = frozenset(line.partition(":")[0].partition("(")[0] for line in CHECK_MARKERS)
"""Marks on which no plugin acts. A check with any other mark gets ordinary items, so that the mark takes effect."""
DEBUG_OPTIONS = ("usepdb", "trace", "setupshow", "setuponly", "setupplan", "assay_ordinary_items")
"""Options that show what slim items lack: phases, fixtures, a traceback."""
NO_SUBJECT = NamedSubject(CheckSubject("", ""), "", "")


def wants_slim_items(config: pytest.Config) -> bool:
    """Return whether slim items will do: no option asks for tracebacks, a debugger, fixtures or Allure's files."""
    is_debugging = any(config.getoption(option, default=False) for option in DEBUG_OPTIONS)
    return (
        terminal_report.is_one_line_output(config)
        and not ordinary_items.is_allure_requested(config)
        and not is_debugging
    )


class ItemFactory:
    """Makes the slim items of one session. `slim` says whether it may; without, all items are ordinary."""

    def __init__(self, fixtures: CheckFixtures, *, slim: bool) -> None:
        self._fixtures, self._binding, self.slim = fixtures, FixtureBinding(fixtures), slim

    def describe_check(self, check_id: str, function: Any, module: pytest.Collector) -> SlimCheck:
        """Return what the items of a test function have in common."""
        own_markers: list[pytest.Mark] = list(getattr(function, "pytestmark", []))
        return SlimCheck(check_id, function, CheckMarks.of_function(function, module), own_markers, module.ihook)

    def is_slim_check(self, check: SlimCheck, module: pytest.Collector) -> bool:
        """Return whether a check is a plain function whose arguments, marks and fixtures are all assay's.

        It then has one item for each subject, and the item's id ends with the subject's.
        """
        if not isinstance(module, pytest.Module) or not _is_plain_function(check.function):
            return False
        marks = {mark.name for mark in (*check.own_markers, *module.iter_markers())}
        return (
            marks <= OWN_MARKS
            and self._binding.knows(list(read_parameters(check.function)))
            and not hasattr(module.obj, "pytest_generate_tests")
            and self._has_own_fixtures_only(check.function, module)
        )

    def make_example(self, check: SlimCheck, module: pytest.Collector) -> SlimItem:
        """Return an item without a subject, against which `ExpressionFilter` holds -k and -m."""
        return _make_item(check, module, f"{check.name}[", NO_SUBJECT)

    def make_items(
        self, check: SlimCheck, module: pytest.Collector, subjects: Iterable[NamedSubject]
    ) -> list[pytest.Item]:
        """Return a slim item for each subject."""
        check.recipe = self._binding.make_recipe(list(read_parameters(check.function)))
        check.keywords = dict.fromkeys((check.name, *module.keywords, *(mark.name for mark in check.own_markers)), 1)
        return [_make_item(check, module, f"{check.name}[{subject.id}]", subject) for subject in subjects]

    def _has_own_fixtures_only(self, function: Callable[..., Any], module: pytest.Module) -> bool:
        """Return whether pytest would use only assay's fixtures: no module overrides one, and none is automatic."""
        used = find_fixture_functions(module, function)
        used.pop("request", None)
        return all(getattr(fixture, "__self__", None) is self._fixtures for fixture in used.values())


def _make_item(check: SlimCheck, module: pytest.Collector, name: str, subject: NamedSubject) -> SlimItem:
    item: SlimItem = SlimItem.from_parent(
        module, name=name, check=check, subject=subject.subject, node_name=subject.node
    )
    return item


def _is_plain_function(function: Any) -> bool:
    """Return whether a call with its arguments by name is all that the function needs: no defaults, no generator."""
    special = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if (
        not inspect.isfunction(function)
        or hasattr(function, "__wrapped__")
        or any(is_special(function) for is_special in special)
    ):
        return False
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return all(
        parameter.kind in kinds and parameter.default is parameter.empty
        for parameter in read_parameters(function).values()
    )
