"""Plain values that know their origin: a reading its path in the evidence, a spec's value its file and line."""

from __future__ import annotations

from typing import Any


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


class TracedList(TracedValue, list[Any]):
    """A list with its origin."""


_KINDS: dict[type, type[TracedValue]] = {int: TracedInt, float: TracedFloat, str: TracedStr, list: TracedList}


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
