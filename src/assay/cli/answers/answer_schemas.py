"""Builds the JSON Schema of what a command prints with `--format json`, from the shapes that the code declares."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from assay.cli.answers.registry import ANSWERS, AnswerForm
from assay.fleet.spec_reference.field_meanings import find_meaning, list_paragraphs

DIALECT = "https://json-schema.org/draft/2020-12/schema"
CONFIG = ConfigDict(use_attribute_docstrings=True, extra="forbid")
LIST_SIGN = "[]"


class _ShapeSchema(GenerateJsonSchema):
    """Describes each field by what its class says of it. Leaves out titles, which only repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 — the signature is pydantic's
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Whether a field is in every answer: one of a class always is, also if it has a default."""
        return field["type"] != "typed-dict-field" or bool(field.get("required", total))

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema without the default: an answer leaves nothing out because of it."""
        return self.generate_inner(schema["schema"])

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        return _describe_fields(schema["cls"], super().typed_dict_schema(schema))

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        return _describe_fields(schema["cls"], super().dataclass_schema(schema))


def _describe_fields(shape: type, schema: dict[str, Any]) -> dict[str, Any]:
    """Fill in what the class and its bases say of fields without a text of their own. Return the schema."""
    for base in {*getattr(shape, "__orig_bases__", ()), *shape.__bases__}:
        if not isinstance(base, type) or not getattr(base, "__annotations__", None):
            continue
        told = _build_schema(base)["$defs"][base.__name__]
        for name, field in told["properties"].items():
            if "description" in field:
                schema["properties"][name].setdefault("description", field["description"])
    paragraphs = list_paragraphs(shape)
    for name, field in schema["properties"].items():
        if "description" not in field and (text := find_meaning(paragraphs, name)):
            field["description"] = text
    return schema


def build_answer_schema(command: str) -> dict[str, Any]:
    """Return the schema of a command's answer. `command` are its words after `assay`."""
    answer = ANSWERS[command]
    forms, defs = zip(*map(_describe_form, answer), strict=True)
    called = f"assay {command} --format json"
    head = {"$schema": DIALECT, "title": called, "description": f"What `{called}` prints."}
    parts = {name: part for one in defs for name, part in one.items()}
    return {**head, **(forms[0] if len(forms) == 1 else {"anyOf": [*forms]}), "$defs": dict(sorted(parts.items()))}


def describe_form(form: AnswerForm) -> str:
    """Return what an answer holds: the first sentence of its shape's text."""
    text = inspect.cleandoc(_load_shape(form).__doc__ or "").partition("\n\n")[0]
    sentence = f"{' '.join(text.split()).partition('. ')[0].rstrip('.')}."
    return f"A list of these: {sentence[:1].lower()}{sentence[1:]}" if _is_list(form) else sentence


def _describe_form(form: AnswerForm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a reference to the schema of a form, and the definitions that it refers to."""
    built = _build_schema(_load_shape(form))
    told = {"type": "array", "items": built["items"]} if _is_list(form) else built["items"]
    when = {"description": f"{form.when[:1].upper()}{form.when[1:]}."} if form.when else {}
    return {**told, **when}, built.get("$defs", {})


def _load_shape(form: AnswerForm) -> Any:
    module, _, name = form.shape.removesuffix(LIST_SIGN).partition(":")
    return getattr(importlib.import_module(f"assay.{module}"), name)


def _is_list(form: AnswerForm) -> bool:
    return form.shape.endswith(LIST_SIGN)


def _build_schema(shape: Any) -> dict[str, Any]:
    """Return pydantic's schema. A list stands around the shape, since only then does pydantic take a configuration."""
    adapter: TypeAdapter[Any] = TypeAdapter(list[shape], config=CONFIG)
    return adapter.json_schema(mode="serialization", schema_generator=_ShapeSchema)
