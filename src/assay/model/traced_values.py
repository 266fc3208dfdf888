"""Plain values that know their origin: a reading its path in the evidence, a spec's value its file and line.

Lists and mappings of evidence refuse changes, since many checks read them, and each must see all of them. Readers see a
`list` and a `dict`. Copies (`list(x)`, `copy.deepcopy(x)`) are plain ones.
"""

from __future__ import annotations

import copy
from typing import Any, Never


class FrozenValueError(TypeError):
    """Something tried to change evidence."""

    def __init__(self) -> None:
        super().__init__("evidence cannot be changed, since other checks read it too; change a copy: copy.deepcopy(…)")


def _refuse(*_: object, **__: object) -> Never:
    raise FrozenValueError


class FrozenList(list[Any]):
    """A list that refuses changes."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(item, memo) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class FrozenDict(dict[Any, Any]):
    """A mapping that refuses changes."""

    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def freeze_value(value: Any) -> Any:
    """Return JSON data whose lists and mappings, at any depth, refuse changes."""
    if isinstance(value, list):
        return FrozenList(map(freeze_value, value))
    return FrozenDict({key: freeze_value(item) for key, item in value.items()}) if isinstance(value, dict) else value


class TracedValue:
    """The origin of a value.

    `path` leads to a reading (document, channel, …), `source` is the file and line in a spec, `unit` the value's unit.
    """

    path: tuple[str, ...] = ()
    source: str = ""
    unit: str = ""


class TracedInt(TracedValue, int):
    """An int with its origin."""


class TracedFloat(TracedValue, float):
    """A float with its origin."""


class TracedStr(TracedValue, str):
    """A str with its origin."""


class TracedList(TracedValue, FrozenList):
    """A list with its origin, which nobody can change."""


_KINDS: dict[type, type[TracedValue]] = {
    int: TracedInt,
    float: TracedFloat,
    str: TracedStr,
    list: TracedList,
    FrozenList: TracedList,
}


def trace_value(value: Any, path: tuple[str, ...] = (), source: str = "", unit: str = "") -> Any:
    """Return `value` with its origin. Booleans and other types cannot carry one and are returned unchanged."""
    kind = _KINDS.get(type(value))
    if kind is None:
        return value
    traced = kind(value)  # type: ignore[call-arg]  # each kind takes the value of its own type
    if path:  # the class has the empty defaults: setting an attribute costs memory
        traced.path = path
    if source:
        traced.source = source
    if unit:
        traced.unit = unit
    return traced


def format_value(value: Any) -> str:
    """Return a value as people write it: 16 instead of 16.0, 0.1 instead of 0.10000000000000001."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"
    return str(value)
