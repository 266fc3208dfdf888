"""Slim items: a check that only judges evidence, on one subject, as pytest sees it in selections and reports."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import pytest

from assay.harness.given import NOTHING, Recipe
from assay.harness.marks import Marks
from assay.model.subject import Subject


@dataclass
class Check:
    """What all items of one check share. `id` is the check's in every outcome, `name` its function's."""

    id: str
    function: Callable[..., Any]
    marks: Marks
    own_markers: list[pytest.Mark]
    recipe: Recipe = NOTHING
    place: str = ""
    keywords: dict[str, Literal[1]] = field(default_factory=dict)

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

    `whose` is the node that it judges, "" for a rack's or a fabric's.
    """

    def __init__(self, *, check: Check, subject: Subject, whose: str, **given: Any) -> None:
        super().__init__(**given)
        self.check, self.subject, self.whose = check, subject, whose
        self.own_markers = check.own_markers  # one list for all: nobody marks a single subject

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
