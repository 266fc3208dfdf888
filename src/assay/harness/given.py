"""What a slim item gives its check: the same fixtures as pytest gives an ordinary one, made without pytest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from assay.harness.fixtures import Fixtures
from assay.harness.trial import Trial

OF_PYTEST = ("subject", "trial")
"""Those two that pytest makes from its request; a slim item has them at hand."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make the arguments of one check: steps in order, each with what it is made of."""

    arguments: tuple[str, ...]
    steps: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...]

    def made(self, trial: Trial) -> dict[str, Any]:
        """Return the arguments for a trial. Raises what the fixtures raise."""
        known: dict[str, Any] = {"trial": trial}
        if "subject" in self.arguments:
            known["subject"] = str(trial.subject)
        for name, make, needs in self.steps:
            known[name] = make(known[needs[0]]) if len(needs) == 1 else make(*[known[one] for one in needs])
        return {name: known[name] for name in self.arguments}


NOTHING = Recipe((), ())


class Given:
    """The closed set of arguments that only judge evidence."""

    def __init__(self, fixtures: Fixtures) -> None:
        self._fixtures = fixtures

    @cached_property
    def _makers(self) -> Mapping[str, tuple[Callable[..., Any], tuple[str, ...]]]:
        """Every fixture's own function, bound, and the names of what it is made of."""
        found = {}
        for name, fixture in vars(Fixtures).items():
            function = getattr(fixture, "__wrapped__", None)  # pytest wraps it, as functools does
            if function is not None and name not in OF_PYTEST:
                made_of = tuple(inspect.signature(function).parameters)[1:]
                found[name] = (function.__get__(self._fixtures), made_of)
        return found

    def knows(self, names: list[str]) -> bool:
        """Return whether all these arguments are in the set."""
        return all(name in self._makers or name in OF_PYTEST for name in names)

    def recipe(self, arguments: list[str]) -> Recipe:
        """Return how to make arguments of the set, what they are made of first."""
        order = dict[str, None]()
        for name in arguments:
            self._add(name, order)
        return Recipe(tuple(arguments), tuple((name, *self._makers[name]) for name in order))

    def _add(self, name: str, order: dict[str, None]) -> None:
        if name in OF_PYTEST or name in order:
            return
        for part in self._makers[name][1]:
            self._add(part, order)
        order[name] = None
