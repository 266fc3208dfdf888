"""What `-k` and `-m` leave of a check's subjects, told before their items are made.

pytest applies both again to the items, so whatever cannot be told here simply stays. Expressions and what they match
are pytest's own: a test holds this module to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import pytest
from _pytest.mark import KeywordMatcher, MarkMatcher
from _pytest.mark.expression import Expression

MOST = 6
"""Words of an expression that subjects may decide; each doubles what has to be tried."""


@dataclass(frozen=True)
class Words:
    """The words of `-k` that a check's own names leave open, and with which of them found the expression holds."""

    words: tuple[str, ...]
    holds: frozenset[tuple[bool, ...]]

    def fit(self, subject: str) -> bool:
        """Return whether a subject, in lower case, has the words that it must have and lacks those it must lack."""
        return tuple(word in subject for word in self.words) in self.holds

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The words that a subject must have, whatever the others are."""
        return tuple(word for at, word in enumerate(self.words) if all(found[at] for found in self.holds))


ANY = Words((), frozenset({()}))
NONE = Words((), frozenset())


class Narrow:
    """The expressions of one session."""

    def __init__(self, config: pytest.Config) -> None:
        self._names = _compiled(config.getoption("keyword"))
        self._marks = _compiled(config.getoption("markexpr"))

    def words(self, example: pytest.Item) -> Words:
        """Return what subjects of a check must be like.

        `example` is an item of the check whose name is `test_x[`, without a subject.
        """
        if not self._admits(example.iter_markers()):
            return NONE
        return _open(self._names, KeywordMatcher.from_item(example)) if self._names else ANY

    def _admits(self, marks: Iterable[pytest.Mark]) -> bool:
        with suppress(pytest.UsageError):
            return self._marks is None or self._marks.evaluate(MarkMatcher.from_markers(marks))
        return True


def _compiled(text: str) -> Expression | None:
    """Return an expression, None where there is none or where pytest will say what is wrong with it."""
    with suppress(SyntaxError):
        return Expression.compile(text.lstrip()) if text and text.strip() else None
    return None


def _open(expression: Expression, known: KeywordMatcher) -> Words:
    idents = sorted(expression.idents())
    free = [ident for ident in idents if not known(ident)]
    if len(free) > MOST or any(bracket in ident for ident in free for bracket in "[]"):
        return ANY  # a word with a bracket may reach from the name into the subject
    holds = set()
    for found in product((False, True), repeat=len(free)):
        said = dict.fromkeys(idents, True) | dict(zip(free, found, strict=True))
        try:
            true = expression.evaluate(lambda name, /, **_: said[name])  # noqa: B023 — called here and now
        except pytest.UsageError:
            return ANY
        if true:
            holds.add(found)
    return Words(tuple(ident.lower() for ident in free), frozenset(holds))
