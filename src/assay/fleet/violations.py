"""Says in plain words what a model refused, and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from assay.fleet.telltale import shape_of
from assay.model.errors import Contradiction

SECRET = re.compile(r"credential|passw|_pass\b|secret|token|key|community", re.IGNORECASE)  # never shown, in no message
FIX = "correct one of the two"
FIXES = {
    "bool_type": "write true or false",
    "dict_type": "write a mapping: names, colons, values",
    "float_type": "write a number, without quotes",
    "int_from_float": "write a whole number",
    "int_type": "write a whole number, without quotes",
    "list_type": "write a list: one item a line, each after a dash",
    "model_type": "write a mapping: names, colons, values",
    "string_pattern_mismatch": "write it in that form",
    "string_type": "quote it: YAML reads it as something other than text",
}


class Violation(NamedTuple):
    """One entry that a model refused. `code` is empty where the schema refuses it too."""

    path: tuple[Any, ...]
    message: str
    fix: str
    code: str = ""


def violations(error: ValidationError, model: type[BaseModel]) -> list[Violation]:
    """Return everything that `model` refused."""
    return [one for found in error.errors(include_url=False) for one in _violations(found, model)]


def _violations(found: Mapping[str, Any], model: type[BaseModel]) -> list[Violation]:
    loc = tuple(found["loc"])
    if found["type"] != "value_error":
        return [Violation(loc, message(found), fix(found, model))]
    cause = found["ctx"]["error"]
    if isinstance(cause, Contradiction):
        return [Violation((*loc, *one.path), one.what, one.fix or FIX, one.code) for one in cause.found]
    return [Violation((*loc, *_meant(cause)), message(found), fix(found, model), "ASY0004")]


def _meant(cause: ValueError) -> tuple[Any, ...]:
    """Return the path that a complaint begins with, as far as it can be one."""
    steps = str(cause).split(" ", 1)[0].rstrip(":").split(".")
    return tuple(int(step) if step.isdecimal() else step for step in steps)


def message(found: Mapping[str, Any]) -> str:
    """Return what is wrong with one entry."""
    name = dotted(found["loc"])
    if found["type"] == "missing":
        return f"{name} is missing"
    if found["type"] == "extra_forbidden":
        return f"{name} is not known here"
    said = str(found["msg"]).removeprefix("Value error, ")
    if found["type"] == "value_error":
        return f"{name}: {said}" if name else said
    seen = "what stands there" if _secret(name, found["input"]) else _shown(found["input"])
    return f"{name}: {said[:1].lower()}{said[1:]}, not {seen}"


def fix(found: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return what to write instead, where that is known."""
    if found["type"] == "missing":
        return f"add {found['loc'][-1]}"
    if found["type"] == "extra_forbidden":
        return _nearest(str(found["loc"][-1]), fields_at(model, found["loc"][:-1]))
    if found["type"] == "string_type" and isinstance(found["input"], bool):
        return "quote it: YAML reads yes, no, on and off as true and false"
    if found["type"] == "literal_error":
        return _nearest(str(found["input"]), re.findall(r"'([^']*)'", found["ctx"]["expected"]))
    return FIXES.get(found["type"], "correct the value")


def dotted(path: Sequence[Any]) -> str:
    """Return a path as `limits.pcie_width.value`."""
    return ".".join(str(step) for step in path)


def fields_at(model: Any, path: Sequence[Any]) -> list[str]:
    """Return the keys that a model allows at `path`; empty where it cannot be told."""
    for step in path:
        model = _below(model, str(step))
    return [name for one in _alternatives(model) if _is_model(one) for name in one.model_fields]


def _below(annotation: Any, step: str) -> Any:
    """Return the annotation of what stands at `step` below a value of this annotation."""
    for one in _alternatives(annotation):
        if _is_model(one) and step in one.model_fields:
            return one.model_fields[step].annotation
        if get_origin(one) in (dict, list):
            return get_args(one)[-1]
    return None


def _alternatives(annotation: Any) -> list[Any]:
    """Return the members of a union, or the annotation alone."""
    return list(get_args(annotation)) if get_origin(annotation) in (Union, UnionType) else [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel)


def _nearest(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"use one of {', '.join(known)}" if known else "remove it"


def _secret(name: str, value: Any) -> bool:
    return bool(SECRET.search(name) or (isinstance(value, str) and shape_of(value)))


def _shown(value: Any) -> str:
    """Return a value for a message. What is inside of mappings and lists stays there: it may be a secret."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
