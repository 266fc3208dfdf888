"""Problems of a fleet repository, each with its place and a fix; and plain words for what a pydantic model refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from assay.declare.secret_detection import find_secret_shape
from assay.model.errors import ConflictError
from assay.model.text.lists import suggest_nearest

ProblemSeverity = Literal["error", "warning", "notice"]
MOST_ALIKE = 3
"""So many alike problems are listed one by one; more are folded into one."""
_OWN_PART = re.compile(r"'[^']*'|\"[^\"]*\"|[\w.:/-]*\d[\w.:/-]*")
"""What differs between alike messages: quoted texts, and names and numbers with a digit."""
SECRET_NAME = re.compile(r"credential|passw|_pass\b|secret|token|key|community", re.IGNORECASE)
"""Names whose values no message may show."""
DEFAULT_CONFLICT_FIX = "correct one of the two"
FIXES_BY_ERROR = {
    "bool_type": "write true or false",
    "dict_type": "write a mapping: names, colons, values",
    "finite_number": "write a number that a reading can reach",
    "float_type": "write a number, without quotes",
    "int_from_float": "write a whole number",
    "int_type": "write a whole number, without quotes",
    "list_type": "write a list: one item a line, each after a dash",
    "model_type": "write a mapping: names, colons, values",
    "string_pattern_mismatch": "write it in that form",
    "string_type": "quote it: YAML reads it as something other than text",
}


@dataclass(frozen=True, slots=True, order=True)
class FleetProblem:
    """A problem of a fleet repository, with its place and its fix."""

    file: str
    """The file, relative to the repository."""
    line: int
    """The line, from 1; 0 for the whole file."""
    column: int
    """The column, from 1; 0 for the whole line."""
    code: str
    """The kind of mistake, such as ASY0054. It never changes its meaning: `assay check --explain CODE` explains it."""
    severity: ProblemSeverity
    """How bad it is. A notice announces a problem that will exist soon."""
    message: str
    """What is wrong."""
    fix: str = ""
    """What to do; "" if there is nothing to add."""

    @property
    def where(self) -> str:
        """The place as `file:line:column`, without the parts that are 0."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


@dataclass(frozen=True)
class AlikeProblems:
    """Problems with the same code and messages that differ only in names and numbers; at least one, in order."""

    problems: tuple[FleetProblem, ...]

    @property
    def first(self) -> FleetProblem:
        """The first of them."""
        return self.problems[0]

    def describe_others(self) -> str:
        """Return how many more there are, their first lines and their files; "" if there is only one."""
        others = self.problems[1:]
        if not others:
            return ""
        first = others[:MOST_ALIKE]
        places = ", ".join(f"{other.file}:{other.line}" if other.line else other.file for other in first)
        text = f"and {len(others)} more like this: {places}"
        if len(others) == len(first):
            return text
        by_file = Counter(other.file for other in others).most_common()
        files = [f"{count} in {file}" for file, count in by_file[:MOST_ALIKE]]
        if elsewhere := by_file[MOST_ALIKE:]:
            files.append(f"{sum(count for _, count in elsewhere)} in other files")
        return f"{text} …; {', '.join(files)}"


def fold_alike(problems: Iterable[FleetProblem]) -> list[AlikeProblems]:
    """Return the problems in order; more than MOST_ALIKE alike ones stand together, at the place of the first."""
    alike: dict[tuple[str, str, str], list[FleetProblem]] = {}
    for problem in problems:
        key = (problem.code, problem.severity, _OWN_PART.sub("…", problem.message))
        alike.setdefault(key, []).append(problem)
    folded: list[AlikeProblems] = []
    for group in alike.values():
        if len(group) > MOST_ALIKE:
            folded.append(AlikeProblems(tuple(group)))
        else:
            folded += [AlikeProblems((problem,)) for problem in group]
    return sorted(folded, key=attrgetter("first"))


class SchemaViolation(NamedTuple):
    """One entry that a model refused. `code` is "" if the JSON schema refuses it too."""

    path: tuple[Any, ...]
    message: str
    fix: str
    code: str = ""


def explain_violations(error: ValidationError, model: type[BaseModel]) -> list[SchemaViolation]:
    """Return everything that `model` refused, in plain words."""
    violations: list[SchemaViolation] = []
    for refusal in error.errors(include_url=False):
        violations += _explain_violation(refusal, model)
    return violations


def _explain_violation(violation: Mapping[str, Any], model: type[BaseModel]) -> list[SchemaViolation]:
    loc = tuple(violation["loc"])
    if violation["type"] != "value_error":
        return [SchemaViolation(loc, describe_violation(violation), suggest_fix(violation, model))]
    cause = violation["ctx"]["error"]
    if isinstance(cause, ConflictError):
        return [
            SchemaViolation(
                (*loc, *conflict.path), conflict.message, conflict.fix or DEFAULT_CONFLICT_FIX, conflict.code
            )
            for conflict in cause.conflicts
        ]
    # a validator's message begins with what it refuses: `cables.3 is …` stands at ("cables", 3)
    steps = str(cause).split(" ", 1)[0].rstrip(":").split(".")
    path = (*loc, *(int(step) if step.isdecimal() else step for step in steps))
    return [SchemaViolation(path, describe_violation(violation), suggest_fix(violation, model), "ASY0004")]


def describe_violation(violation: Mapping[str, Any]) -> str:
    """Return what is wrong with one entry. `found` is one of pydantic's errors."""
    name = format_path(violation["loc"])
    if violation["type"] == "missing":
        return f"{name} is missing"
    if violation["type"] == "extra_forbidden":
        return f"{name} is not known here"
    message = str(violation["msg"]).removeprefix("Value error, ")
    if violation["type"] == "value_error":
        return f"{name}: {message}" if name else message
    value = violation["input"]
    is_secret = SECRET_NAME.search(name) or (isinstance(value, str) and find_secret_shape(value))
    seen = "what stands there" if is_secret else _format_value(value)
    return f"{name}: {message[:1].lower()}{message[1:]}, not {seen}"


def suggest_fix(violation: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return what to write instead of an entry that `model` refused."""
    if violation["type"] == "missing":
        return f"add {violation['loc'][-1]}"
    if violation["type"] == "extra_forbidden":
        return _suggest_nearest(str(violation["loc"][-1]), find_allowed_keys(model, violation["loc"][:-1]))
    if violation["type"] == "string_type" and isinstance(violation["input"], bool):
        return "quote it: YAML reads yes, no, on and off as true and false"
    if violation["type"] == "literal_error":
        return _suggest_nearest(str(violation["input"]), re.findall(r"'([^']*)'", violation["ctx"]["expected"]))
    return FIXES_BY_ERROR.get(violation["type"], "correct the value")


def format_path(path: Sequence[Any]) -> str:
    """Return a path as `limits.pcie_width.value`."""
    return ".".join(str(step) for step in path)


def find_allowed_keys(model: Any, path: Sequence[Any]) -> list[str]:
    """Return the keys that a model allows at `path`, none if that is not known."""
    for step in path:
        model = _annotation_below(model, str(step))
    return [name for member in _alternatives(model) if _is_model(member) for name in member.model_fields]


def _annotation_below(annotation: Any, step: str) -> Any:
    """Return the annotation of the entry `step` in a value of this annotation."""
    for member in _alternatives(annotation):
        if _is_model(member) and step in member.model_fields:
            return member.model_fields[step].annotation
        if get_origin(member) in (dict, list):
            return get_args(member)[-1]
    return None


def _alternatives(annotation: Any) -> list[Any]:
    """Return the members of a union, or the annotation alone."""
    return list(get_args(annotation)) if get_origin(annotation) in (Union, UnionType) else [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel)


def _suggest_nearest(name: str, known: Sequence[str]) -> str:
    return suggest_nearest(name, known) or (f"use one of {', '.join(known)}" if known else "remove it")


def _format_value(value: Any) -> str:
    """Return a value for a message. Contents of mappings and lists are not shown: they may be secret."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
