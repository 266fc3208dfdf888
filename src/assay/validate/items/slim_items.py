"""Slim items: a check that only judges evidence, on one subject, as pytest sees it in selections and reports.

Their arguments are the fixtures that an ordinary item gets, called without pytest's fixture machinery.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pluggy
import pytest

from assay.model.facts import frozen
from assay.model.outcome import CheckSubject
from assay.validate.fixtures.check_fixtures import CheckFixtures
from assay.validate.judging.verdict import CheckContext
from assay.validate.markers import CheckMarks
from assay.validate.pytest_internals import LazyItem

REQUEST_FIXTURES = ("subject", "check_context")
"""The fixtures that pytest makes from its request; slim items have their values at hand."""


class SlimItem(LazyItem):
    """One check on one subject, without fixtures, phases or captured output of its own.

    Its id is that of the ordinary item. `node_name` is the node that it judges, "" for a rack or a fabric.
    """

    def __init__(
        self, *, name: str, parent: pytest.Collector, check: SlimCheck, subject: CheckSubject, node_name: str
    ) -> None:
        # all items of a check share its markers and keywords until one of them is marked
        super().__init__(name=name, parent=parent, own_markers=check.own_markers, keywords=check.keywords)
        self.check = check
        self.subject = subject
        self.node_name = node_name

    @property
    def subject_id(self) -> str:
        """The id of the subject, which ends the item's name."""
        return self.name[len(self.check.name) + 1 : -1]

    @property
    def ihook(self) -> pluggy.HookRelay:
        """The hooks of the check's module, looked up once for all items."""
        return self.check.hooks

    def add_marker(self, marker: str | pytest.MarkDecorator, append: bool = True) -> None:
        """Mark this one item, as a conftest may. A mark that pytest would act on makes the item an error."""
        self.own_markers, self.keywords = [*self.own_markers], dict(self.keywords)
        super().add_marker(marker, append)

    @property
    def added_marks(self) -> list[str]:
        """The names of the marks that this item has and its check does not have."""
        if self.own_markers is self.check.own_markers:
            return []
        known = {mark.name for mark in self.check.own_markers}
        return [mark.name for mark in self.own_markers if mark.name not in known]

    @property
    def function(self) -> Callable[..., Any]:
        """The check's function, under the name that plugins read."""
        return self.check.function

    obj = function

    @property
    def originalname(self) -> str:
        """The check's name without the subject."""
        return self.check.name

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return path, line (from 0) and name of the check."""
        return self.path, self.check.line, self.name

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Path relative to the session's root, line (from 0) and name of the check."""
        if not self.check.relative_path:
            self.check.relative_path = super().location[0]
        return self.check.relative_path, self.check.line, self.name

    def runtest(self) -> None:
        """Refuse to run as an ordinary item: `SlimItemProtocol` judges it. Raises NotImplementedError."""
        raise NotImplementedError


@frozen
class FixtureRecipe:
    """How to make the arguments of one check: steps in order, each a fixture, its function and what that takes."""

    arguments: tuple[str, ...]
    steps: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...]

    def make_arguments(self, context: CheckContext) -> dict[str, Any]:
        """Return the arguments for one subject. Raises what the fixtures raise."""
        known: dict[str, Any] = {"check_context": context}
        if "subject" in self.arguments:
            known["subject"] = str(context.subject)
        for name, make, needs in self.steps:
            known[name] = make(known[needs[0]]) if len(needs) == 1 else make(*[known[need] for need in needs])
        return {name: known[name] for name in self.arguments}


@dataclass
class SlimCheck:
    """What all items of one check share: `id` as outcomes name it, and the `hooks` that apply in its module."""

    id: str
    function: Callable[..., Any]
    marks: CheckMarks
    own_markers: list[pytest.Mark]
    hooks: pluggy.HookRelay
    recipe: FixtureRecipe = FixtureRecipe((), ())
    relative_path: str = ""
    keywords: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @cached_property
    def line(self) -> int:
        """The line of the function, counted from 0 as pytest does."""
        return int(inspect.unwrap(self.function).__code__.co_firstlineno) - 1


class FixtureBinding:
    """The fixtures that a slim item can have as arguments: those of `CheckFixtures`."""

    def __init__(self, fixtures: CheckFixtures) -> None:
        self._fixtures = fixtures

    @cached_property
    def _functions(self) -> Mapping[str, tuple[Callable[..., Any], tuple[str, ...]]]:
        """Each fixture's bound function, and the names of its arguments."""
        functions = {}
        for name, fixture in vars(CheckFixtures).items():
            function = getattr(fixture, "__wrapped__", None)  # pytest wraps it as functools does
            if function is not None and name not in REQUEST_FIXTURES:
                needs = tuple(inspect.signature(function).parameters)[1:]
                functions[name] = (function.__get__(self._fixtures), needs)
        return functions

    def knows(self, names: list[str]) -> bool:
        """Return whether all these arguments are such fixtures."""
        return all(name in self._functions or name in REQUEST_FIXTURES for name in names)

    def make_recipe(self, arguments: list[str]) -> FixtureRecipe:
        """Return how to make the arguments; what a fixture takes comes before it."""
        order = dict[str, None]()
        for name in arguments:
            self._add_with_needs(name, order)
        return FixtureRecipe(tuple(arguments), tuple((name, *self._functions[name]) for name in order))

    def _add_with_needs(self, name: str, order: dict[str, None]) -> None:
        if name in REQUEST_FIXTURES or name in order:
            return
        for need in self._functions[name][1]:
            self._add_with_needs(need, order)
        order[name] = None
