"""Where the parts of a YAML file stand, and how a file that cannot be read says where."""

from __future__ import annotations

from typing import Any

from assay.fleet.problem import Problem
from assay.model.errors import Trouble

COLUMNS = 1 << 12


class Marks:
    """Where the parts of one container stand: `at` itself, `of` its entries, by key or index.

    A place is `line * COLUMNS + column`; an entry that is a container has Marks, any other its place alone.
    """

    __slots__ = ("at", "of", "size")

    def __init__(self, at: int, of: dict[Any, Marks | int]) -> None:
        self.at, self.of, self.size = at, of, 1


class Unreadable(Trouble):
    """A file that is no YAML we accept; `line` and `column` count from 1."""

    def __init__(self, what: str, file: str, at: int = 0, fix: str = "") -> None:
        self.file, self.line, self.column = file, at // COLUMNS + 1, at % COLUMNS + 1
        super().__init__(what, where=f"{file}:{self.line}:{self.column}", fix=fix)

    def as_problem(self) -> Problem:
        """Return it as a problem for `check` to list."""
        return Problem(self.file, self.line, self.column, "ASY0001", "error", self.what, self.fix)


def place_of(mark: Any) -> int:
    """Return the place of a parser's mark."""
    place: int = mark.line * COLUMNS + (mark.column if mark.column < COLUMNS else COLUMNS - 1)
    return place


def size_of(marks: Marks | int) -> int:
    """Return how many values an entry stands for."""
    return marks.size if isinstance(marks, Marks) else 1


def moved(marks: Marks | int, at: int) -> Marks | int:
    """Return `marks` as they are for an entry whose key stands at `at`: that is where a reader looks."""
    if not isinstance(marks, Marks):
        return at
    other = Marks(at, marks.of)
    other.size = marks.size
    return other
