"""Builds the JSON Schema of what a command prints with `--format json`, from the shapes that the code declares."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from typing import Any

from assay.cli.verbs.registry import ANSWERS, AnswerForm
from assay.declare.shape_schema import build_list_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
LIST_SIGN = "[]"
CONTEXT = {
    "type": "string",
    "enum": ["fleet", "lab"],
    "description": "What the command worked on: the real fleet, or its lab. Missing where it needs neither.",
}
"""The field that `format_answer` puts into each object that is an answer."""


def build_answer_schema(command: str) -> dict[str, Any]:
    """Return the schema of a command's answer. `command` are its words after `assay`."""
    answer = ANSWERS[command]
    forms, defs = zip(*map(_describe_form, answer), strict=True)
    called = f"assay {command} --format json"
    head = {"$schema": DIALECT, "title": called, "description": f"What `{called}` prints."}
    parts = {name: part for one in defs for name, part in one.items()}
    return {**head, **(forms[0] if len(forms) == 1 else {"anyOf": [*forms]}), "$defs": dict(sorted(parts.items()))}


def format_answer_schema(command: str) -> str:
    """Return the text of a command's schema."""
    return json.dumps(build_answer_schema(command), indent=2, ensure_ascii=False) + "\n"


def list_answers() -> Iterator[str]:
    """Yield a line for each command that has a schema, with what its answer holds."""
    width = max(map(len, ANSWERS))
    yield from (f"{command:{width}}  {describe_form(answer[0])}" for command, answer in sorted(ANSWERS.items()))


def describe_form(form: AnswerForm) -> str:
    """Return what an answer holds: the first sentence of its shape's text."""
    text = inspect.cleandoc(_load_shape(form).__doc__ or "").partition("\n\n")[0]
    sentence = f"{' '.join(text.split()).partition('. ')[0].rstrip('.')}."
    return f"A list of these: {sentence[:1].lower()}{sentence[1:]}" if _is_list(form) else sentence


def _describe_form(form: AnswerForm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a reference to the schema of a form, and the definitions that it refers to."""
    built = build_list_schema(_load_shape(form), is_closed=True)
    if not _is_list(form):
        name = built["items"]["$ref"].rpartition("/")[2] if "$ref" in built["items"] else ""
        (built["$defs"][name] if name else built["items"])["properties"]["context"] = CONTEXT
    told = {"type": "array", "items": built["items"]} if _is_list(form) else built["items"]
    when = {"description": f"{form.when[:1].upper()}{form.when[1:]}."} if form.when else {}
    return {**told, **when}, built.get("$defs", {})


def _load_shape(form: AnswerForm) -> Any:
    module, _, name = form.shape.removesuffix(LIST_SIGN).partition(":")
    return getattr(importlib.import_module(module), name)


def _is_list(form: AnswerForm) -> bool:
    return form.shape.endswith(LIST_SIGN)
