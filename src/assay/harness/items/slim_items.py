"""Slim items: a check that only judges evidence, on one subject, as pytest sees it in selections and reports.

What a slim item gives its check: the same fixtures as pytest gives an ordinary one, made without pytest.
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
from _pytest.nodeid import NodeId

from assay.harness.fixtures.check_fixtures import CheckFixtures
from assay.harness.judging.verdict import CheckContext
from assay.harness.markers import CheckMarks
from assay.model.outcome import CheckSubject

REQUEST_FIXTURES = ("subject", "trial")
"""Those two that pytest makes from its request; a slim item has them at hand."""


@dataclass(frozen=True, slots=True)
class FixtureRecipe:
    """How to make the arguments of one check: steps in order, each with what it is made of."""

    arguments: tuple[str, ...]
    steps: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...]

    def make_arguments(self, trial: CheckContext) -> dict[str, Any]:
        """Return the arguments for a trial. Raises what the fixtures raise."""
        known: dict[str, Any] = {"trial": trial}
        if "subject" in self.arguments:
            known["subject"] = str(trial.subject)
        for name, make, needs in self.steps:
            known[name] = make(known[needs[0]]) if len(needs) == 1 else make(*[known[one] for one in needs])
        return {name: known[name] for name in self.arguments}


EMPTY_RECIPE = FixtureRecipe((), ())


class FixtureBinding:
    """The closed set of arguments that only judge evidence."""

    def __init__(self, fixtures: CheckFixtures) -> None:
        self._fixtures = fixtures

    @cached_property
    def _makers(self) -> Mapping[str, tuple[Callable[..., Any], tuple[str, ...]]]:
        """Every fixture's own function, bound, and the names of what it is made of."""
        found = {}
        for name, fixture in vars(CheckFixtures).items():
            function = getattr(fixture, "__wrapped__", None)  # pytest wraps it, as functools does
            if function is not None and name not in REQUEST_FIXTURES:
                made_of = tuple(inspect.signature(function).parameters)[1:]
                found[name] = (function.__get__(self._fixtures), made_of)
        return found

    def knows(self, names: list[str]) -> bool:
        """Return whether all these arguments are in the set."""
        return all(name in self._makers or name in REQUEST_FIXTURES for name in names)

    def recipe(self, arguments: list[str]) -> FixtureRecipe:
        """Return how to make arguments of the set, what they are made of first."""
        order = dict[str, None]()
        for name in arguments:
            self._add(name, order)
        return FixtureRecipe(tuple(arguments), tuple((name, *self._makers[name]) for name in order))

    def _add(self, name: str, order: dict[str, None]) -> None:
        if name in REQUEST_FIXTURES or name in order:
            return
        for part in self._makers[name][1]:
            self._add(part, order)
        order[name] = None


@dataclass
class SlimCheck:
    """What all items of one check share. `id` is the check's in every outcome, `name` its function's.

    `module` is the id of its module, and `hooks` are those that apply there.
    """

    id: str
    function: Callable[..., Any]
    marks: CheckMarks
    own_markers: list[pytest.Mark]
    module: str
    hooks: pluggy.HookRelay
    recipe: FixtureRecipe = EMPTY_RECIPE
    place: str = ""
    keywords: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @cached_property
    def line(self) -> int:
        """The line of the function, counted from 0 as pytest's lines are."""
        return int(inspect.unwrap(self.function).__code__.co_firstlineno) - 1


class SlimItem(pytest.Item):
    """One check on one subject, without fixtures, phases or capturing of its own. Its id is that of an ordinary one.

    `whose` is the node that it judges, "" for a rack's or a fabric's. There are many, so each has from the start only
    what pytest asks of all of them, and the rest when something asks for it.
    """

    def __init__(
        self, *, name: str, parent: pytest.Collector, check: SlimCheck, subject: CheckSubject, whose: str
    ) -> None:
        self.name, self.parent, self.path = name, parent, parent.path
        self.config, self.session = parent.config, parent.session
        self.check, self.subject, self.whose = check, subject, whose
        self.own_markers = check.own_markers
        self.keywords = check.keywords  # both shared by all items of the check, as long as nobody marks one

    @cached_property
    def _id(self) -> NodeId:  # type: ignore[override]  # `name` has a bracket, which pytest keeps apart in its ids
        return NodeId.parse(f"{self.check.module}::{self.name}")

    @cached_property
    def stash(self) -> pytest.Stash:  # type: ignore[override]
        """What plugins keep here."""
        return pytest.Stash()

    @cached_property
    def _store(self) -> pytest.Stash:  # type: ignore[override]
        return self.stash

    @cached_property
    def extra_keyword_matches(self) -> set[str]:  # type: ignore[override]
        """More names for -k."""
        return set()

    @cached_property
    def user_properties(self) -> list[tuple[str, object]]:  # type: ignore[override]
        """What plugins want to see in the report."""
        return []

    @cached_property
    def _report_sections(self) -> list[tuple[str, str, str]]:  # type: ignore[override]
        return []

    @property
    def ihook(self) -> pluggy.HookRelay:
        """The hooks of the check's module, looked for once."""
        return self.check.hooks

    def add_marker(self, marker: str | pytest.MarkDecorator, append: bool = True) -> None:
        """Mark this one item, as a conftest may. A mark that pytest would act on is refused when it is judged."""
        self.own_markers, self.keywords = [*self.own_markers], dict(self.keywords)
        super().add_marker(marker, append)

    @property
    def added_marks(self) -> list[str]:
        """The names of the marks that this item has and its check has not."""
        if self.own_markers is self.check.own_markers:
            return []
        known = {mark.name for mark in self.check.own_markers}
        return [mark.name for mark in self.own_markers if mark.name not in known]

    @property
    def function(self) -> Callable[..., Any]:
        """The check's function, where pytest looks for it."""
        return self.check.function

    obj = function

    @property
    def originalname(self) -> str:
        """The check's name without its subject."""
        return self.check.name

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return where the check stands."""
        return self.path, self.check.line, self.name

    @property
    def location(self) -> tuple[str, int | None, str]:
        """Where the check stands, from the root of the session."""
        if not self.check.place:
            self.check.place = super().location[0]
        return self.check.place, self.check.line, self.name

    def runtest(self) -> None:
        """Refuse to be run as an ordinary item: `Protocol` judges it."""
        raise NotImplementedError
