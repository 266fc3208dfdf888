"""Plain values that remember where they were told: a reading its path, a spec's value its line."""

from __future__ import annotations

from typing import Any


class TracedValue:
    """What every remembered value carries beside its value.

    `path` is where it was read (document, channel, …), `source` the file and line of a spec, `unit` its unit.
    """

    path: tuple[str, ...] = ()
    source: str = ""
    unit: str = ""


class TracedInt(TracedValue, int):
    """An int that remembers."""


class TracedFloat(TracedValue, float):
    """A float that remembers."""


class TracedStr(TracedValue, str):
    """A str that remembers."""


class TracedList(TracedValue, list[Any]):
    """A list that remembers."""


_KINDS: dict[type, type[TracedValue]] = {int: TracedInt, float: TracedFloat, str: TracedStr, list: TracedList}


def trace_value(value: Any, path: tuple[str, ...] = (), source: str = "", unit: str = "") -> Any:
    """Return `value` as one that remembers. Booleans and objects come back as they are: they cannot."""
    kind = _KINDS.get(type(value))
    if kind is None:
        return value
    remembered = kind(value)  # type: ignore[call-arg]  # each kind takes the value of its own type
    if path:  # what is not given is as the class has it
        remembered.path = path
    if source:
        remembered.source = source
    if unit:
        remembered.unit = unit
    return remembered


def format_value(value: Any) -> str:
    """Return a value as people write it: 16 and not 16.0, 0.1 and not 0.10000000000000001."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"
    return str(value)
