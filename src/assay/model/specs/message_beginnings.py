"""Turns a regular expression into one for texts that break off within a match, such as `EDAC MC0: 1 U`.

What a lookahead or a back reference asks for is left out, so a text may be taken for a beginning too often.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Item = tuple[Any, Any]
"""One node of a parsed expression: what it is, and its arguments."""
NOTHING = "(?!)"
MANY_LETTERS = 20
"""A text that says so much of a pattern is a beginning, whatever words follow."""
END = r"\Z"
CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
PLACES = {ops.AT_BOUNDARY: r"\b", ops.AT_NON_BOUNDARY: r"\B"}
REPEATS = {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}
LEFT_OUT = {ops.ASSERT, ops.ASSERT_NOT, ops.GROUPREF}


def compile_beginning(pattern: str, letters: int | None = 0) -> re.Pattern[str]:
    """Return an expression that matches, from their start, texts that end before a match of `pattern` is complete.

    Where any words may stand (`.*`, and before a pattern that may match anywhere), most texts are whole: a text that
    ends after such words is a beginning if so many letters of what follows are there, or fewer of them as a word of
    their own, or if much of the pattern stands before; with None it never is.
    """
    items = list(parser.parse(pattern))
    begun = _begin(items, letters) if _is_anchored(items) else _begin_after_words(".*", items, letters)
    return re.compile(begun, re.IGNORECASE | re.DOTALL)


def _is_anchored(items: Sequence[Item]) -> bool:
    if not items:
        return False
    kind, value = items[0]
    if kind is ops.BRANCH:
        return all(_is_anchored(list(branch)) for branch in value[1])
    return kind is ops.AT and value is ops.AT_BEGINNING


def _begin(items: Sequence[Item], letters: int | None, told: int = 0) -> str:
    """Return an expression for texts that end within these items. `told` letters stand before them."""
    if not items:
        return NOTHING
    (kind, value), rest = items[0], items[1:]
    if kind is ops.BRANCH:
        return _join(_begin([*branch, *rest], letters, told) for branch in value[1])
    if kind is ops.SUBPATTERN:
        return _begin([*value[-1], *rest], letters, told)
    if kind in LEFT_OUT or (kind is ops.AT and value not in PLACES):
        return _begin(rest, letters, told)
    if kind in REPEATS:
        return _begin_repeat(value, rest, letters, told)
    return _join((END, _whole([items[0]]) + _begin(rest, letters, told + (kind is ops.LITERAL))))


def _begin_repeat(value: tuple[int, Any, Iterable[Item]], rest: Sequence[Item], letters: int | None, told: int) -> str:
    least, most, inner = value[0], "" if value[1] is ops.MAXREPEAT else value[1], list(value[2])
    one = f"(?:{_whole(inner)})"
    if _is_any_words(inner) and not most:
        needed = 0 if letters and told >= MANY_LETTERS else letters
        return _begin_after_words(f"{one}{{{least},}}", rest, needed)
    before = most - 1 if isinstance(most, int) else most
    ways = f"{one}{{0,{before}}}{_begin(inner, letters, told)}", f"{one}{{{least},{most}}}{_begin(rest, letters, told)}"
    return _join(ways)


def _begin_after_words(words: str, rest: Sequence[Item], letters: int | None) -> str:
    if letters is None:
        return END
    starts = rf"(?:(?=.{{{letters}}})|(?<!\w)(?=.))" if letters else ""
    return _join((END, f"{words}{starts}{_begin(rest, letters)}", *([] if letters else [words + END])))


def _is_any_words(items: Sequence[Item]) -> bool:
    """Whether one of these may be a blank: `.`, `[^:]`."""
    return len(items) == 1 and re.fullmatch(_whole(items), " ") is not None and items[0][0] is not ops.LITERAL


def _join(ways: Iterable[str]) -> str:
    return f"(?:{'|'.join(ways)})"


def _whole(items: Iterable[Item]) -> str:
    return "".join(_whole_item(kind, value) for kind, value in items)


def _whole_item(kind: Any, value: Any) -> str:
    if kind is ops.LITERAL:
        return re.escape(chr(value))
    if kind is ops.NOT_LITERAL:
        return f"[^{re.escape(chr(value))}]"
    if kind is ops.ANY:
        return "."
    if kind is ops.IN:
        return f"[{''.join(_in_set(*one) for one in value)}]"
    if kind is ops.BRANCH:
        return _join(map(_whole, value[1]))
    if kind is ops.SUBPATTERN:
        return f"(?:{_whole(value[-1])})"
    if kind in REPEATS:
        most = "" if value[1] is ops.MAXREPEAT else value[1]
        return f"(?:{_whole(value[2])}){{{value[0]},{most}}}"
    return PLACES.get(value, "") if kind is ops.AT else ""


def _in_set(kind: Any, value: Any) -> str:
    if kind is ops.NEGATE:
        return "^"
    if kind is ops.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return CATEGORIES[value] if kind is ops.CATEGORY else re.escape(chr(value))
