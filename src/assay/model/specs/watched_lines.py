"""Errors of drivers that assay names: where no class has such a message, nobody has judged it, and it is no health."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field

from assay.model.specs.spec_document import StrictModel


def _check_regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


RegexText = Annotated[str, AfterValidator(_check_regex)]
LEAST_LETTERS = 3
LiteralText = Annotated[str, Field(min_length=LEAST_LETTERS)]
PatternSources = dict[RegexText, Annotated[str, Field(min_length=1)]]
"""Regular expressions, each with the source that says where the kernel or a driver writes such a message."""


class ErrorWords(StrictModel):
    """`words` that only an error has, or how they begin; in capitals or not. `source` says who writes them."""

    words: list[LiteralText] = Field(min_length=1)
    source: str = Field(min_length=1)


class LogSubsystem(StrictModel):
    """A driver or subsystem. Its messages begin with one of `begins`; `<number>` stands for any number."""

    begins: list[LiteralText] = Field(min_length=1)
    source: str = Field(min_length=1)


class WatchedLines(StrictModel):
    """The messages that must be judged: errors of these `subsystems`.

    A message is an error by its words (`error_words`), or by the kernel's level: `error_level` or a lower one.
    """

    error_level: int = Field(default=3, ge=0, le=7)
    error_words: list[ErrorWords] = Field(min_length=1)
    subsystems: dict[str, LogSubsystem]

    @cached_property
    def words(self) -> str:
        """A regular expression for any of the error words, where a word begins."""
        return f"(?i:{join_as_tree({word.lower() for group in self.error_words for word in group.words})})"

    @cached_property
    def _error(self) -> re.Pattern[str]:
        return re.compile(f"(?<![a-zA-Z]){self.words}")

    @cached_property
    def heads(self) -> frozenset[str]:
        """How the messages of the subsystems begin."""
        return frozenset(head for owner in self.subsystems.values() for head in owner.begins)

    def find_subsystem(self, head: str) -> str:
        """Return the subsystem whose messages begin so, "" for none."""
        owners = (name for name, driver in self.subsystems.items() if head.startswith(tuple(driver.begins)))
        return next(owners, "")

    def is_error(self, text: str, level: int | None) -> bool:
        """Whether a message is an error; `level` is the kernel's, None if the log does not say."""
        return (level is not None and level <= self.error_level) or self._error.search(text) is not None


def join_patterns(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return an expression for texts that match any of these; of none, no text does."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or "(?!)", re.IGNORECASE)


def join_as_tree(words: Collection[str]) -> str:
    """Return a regular expression for words, as a tree of letters. A word stands for all that begin with it."""
    if "" in words:
        return ""
    rest: dict[str, set[str]] = {}
    for word in sorted(words):
        rest.setdefault(word[0], set()).add(word[1:])
    branches = [re.escape(letter) + join_as_tree(ends) for letter, ends in rest.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
