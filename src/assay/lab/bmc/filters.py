"""`$filter` of the Redfish specification: comparisons of properties with literals, and, or, not, parentheses."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from assay.lab.bmc.errors import RedfishError

Test = Callable[[Mapping[str, Any]], bool]
COMPARE = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
TOKEN = re.compile(r"\s*('(?:[^']|'')*'|[()]|[^\s()']+)")


class Filter:
    """A filter, read once. Raises a 400 for what is no filter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = TOKEN.findall(text)
        if "".join(self._tokens).replace(" ", "") != text.replace(" ", ""):
            raise self._wrong()
        self._test = self._either()
        if self._tokens:
            raise self._wrong()

    def fits(self, resource: Mapping[str, Any]) -> bool:
        """Whether a resource passes."""
        return self._test(resource)

    def _either(self) -> Test:
        tests = [self._both()]
        while self._next("or"):
            tests.append(self._both())
        return lambda one: any(test(one) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self._next("and"):
            tests.append(self._one())
        return lambda one: all(test(one) for test in tests)

    def _one(self) -> Test:
        if self._next("not"):
            inner = self._one()
            return lambda one: not inner(one)
        if self._next("("):
            inner = self._either()
            if not self._next(")"):
                raise self._wrong()
            return inner
        return self._comparison()

    def _comparison(self) -> Test:
        if len(self._tokens) < 3 or self._tokens[1] not in COMPARE:
            raise self._wrong()
        path, how, literal = self._tokens[:3]
        del self._tokens[:3]
        compare, wanted = COMPARE[how], _value(literal)

        def test(one: Mapping[str, Any]) -> bool:
            found = _found(one, path)
            if isinstance(wanted, datetime) and isinstance(found, str):
                found = _time(found)
            try:
                return bool(compare(found, wanted))
            except TypeError:
                return False

        return test

    def _next(self, word: str) -> bool:
        if self._tokens[:1] == [word]:
            del self._tokens[0]
            return True
        return False

    def _wrong(self) -> RedfishError:
        said = f"$filter={self._text} is not understood"
        return RedfishError(400, "QueryParameterValueFormatError", said, self._text, "$filter")


def _found(resource: Mapping[str, Any], path: str) -> Any:
    found: Any = resource
    for step in path.split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _value(literal: str) -> Any:
    """Return what a literal stands for: 'text', a number, true, false, null, a time, else the word itself."""
    if literal.startswith("'"):
        text = literal[1:-1].replace("''", "'")
        return _time(text) or text
    named = {"true": True, "false": False, "null": None}
    if literal in named:
        return named[literal]
    try:
        return float(literal)
    except ValueError:
        return _time(literal) or literal


def _time(text: str) -> datetime | None:
    if not re.match(r"\d{4}-\d\d-\d\dT", text):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
