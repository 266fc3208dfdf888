"""The type, the unit and the default of a model's field, in words for people who write YAML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from assay.declare.schemas import find_written_type

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
UNITS = {
    "minutes": "minutes", "hours": "hours", "seconds": "seconds", "days": "days", "percent": "%", "gib": "GiB",
    "mib": "MiB", "gb": "GB", "mbps": "Mb/s", "mts": "MT/s", "m": "m", "u": "rack units", "bytes": "bytes",
    "s": "seconds",
}  # fmt: skip
"""Last word of a field's name → its unit."""
PER = {"minute": "min", "second": "s", "hour": "h"}
OWN_UNITS = {
    ("NicSpec", "mtu"): "bytes",
    ("CableLengths", "node_leaf"): "m",
    ("CableLengths", "leaf_spine"): "m",
    ("CableLengths", "spine_core"): "m",
    ("CostWeight", "node_hours"): "node-hours",
}
"""Model and field → the unit, where the name does not say it."""


def format_type(field: FieldInfo) -> str:
    """Return the type of a field: `list of [GpuSpec](#gpuspec)`, `whole number > 0`."""
    text = _name_type(find_written_type(field.annotation, field.metadata))
    bounds = list(_list_bounds(field.metadata))
    return f"{text} {', '.join(bounds)}" if bounds and is_number(field.annotation) else text


def format_default(field: FieldInfo) -> str:
    """Return the default of a field; "required" if it has none, "–" if there is nothing by default."""
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if default is None or default is PydanticUndefined or default in ("", [], {}, ()):
        return "–"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, int | float | str):
        return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
    return "its defaults" if isinstance(default, BaseModel) else _join(f"`{one}`" for one in default)


def find_unit(model: type[BaseModel], name: str) -> str:
    """Return the unit of a field, "" if it has none."""
    for base in model.__mro__:
        if (base.__name__, name) in OWN_UNITS:
            return OWN_UNITS[base.__name__, name]
    amount, per, time = name.rpartition("per_")
    words = (amount if per and time in PER else name).rstrip("_").split("_")
    unit = UNITS.get(words[-1], "") if len(words) > 1 or len(words[0]) > 1 else ""
    return f"{unit or '1'}/{PER[time]}" if per and time in PER else unit


def is_number(annotation: Any) -> bool:
    """Whether the value is a number, or a list or mapping of numbers."""
    if annotation in (int, float):
        return True
    return any(is_number(part) for part in get_args(annotation) if part is not type(None))


def _name_type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _name_annotated(parts[0], parts[1:])
    if origin in (Union, UnionType):
        return _join_options(_name_type(part) for part in parts if part is not type(None))
    if origin is Literal:
        return _join_options(f"`{part}`" for part in parts)
    if origin is dict:
        return f"{_name_type(parts[1])}, by name"
    if origin in (list, tuple):
        return f"list of {_name_type(parts[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return WORDS.get(annotation, "any value")


def _name_annotated(inner: Any, metadata: Sequence[Any]) -> str:
    """Return the name of an annotated type, with its bounds if it is a number."""
    bounds = [bound for one in metadata if isinstance(one, FieldInfo) for bound in _list_bounds(one.metadata)]
    text = _name_type(find_written_type(inner, metadata))
    return f"{text} {', '.join(bounds)}" if bounds and is_number(inner) else text


def _list_bounds(metadata: Iterable[Any]) -> Iterable[str]:
    for one in metadata:
        for name, sign in BOUNDS:
            if (bound := getattr(one, name, None)) is not None:
                yield f"{sign} {bound:g}"


def _join_options(names: Iterable[str]) -> str:
    *first, last = dict.fromkeys(names)
    return f"{', '.join(first)} or {last}" if first else last


def _join(names: Iterable[str]) -> str:
    return ", ".join(names)
