"""Builds the JSON Schema of data that assay gives: TypedDicts and dataclasses, with what they say of each field."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, GenerateJsonSchema

from assay.declare.field_meanings import find_meaning, list_paragraphs


def build_list_schema(shape: Any, *, is_closed: bool, ref_template: str = DEFAULT_REF_TEMPLATE) -> dict[str, Any]:
    """Return the schema of a list of a shape, since pydantic takes a configuration only for what stands around it.

    `is_closed`: objects have no other fields.
    """
    config = ConfigDict(use_attribute_docstrings=True, extra="forbid" if is_closed else "ignore")
    adapter: TypeAdapter[Any] = TypeAdapter(list[shape], config=config)
    return adapter.json_schema(mode="serialization", schema_generator=_ShapeSchema, ref_template=ref_template)


class _ShapeSchema(GenerateJsonSchema):
    """Describes each field by what its class says of it. Leaves out titles, which only repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 — the signature is pydantic's
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Whether a field is in every answer: one of a dataclass always is, also if it has a default."""
        return field["type"] == "dataclass-field" or super().field_is_required(field, total)

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
        told = build_list_schema(base, is_closed=True)["$defs"][base.__name__]
        for name, field in told["properties"].items():
            if "description" in field:
                schema["properties"][name].setdefault("description", field["description"])
    paragraphs = list_paragraphs(shape)
    for name, field in schema["properties"].items():
        if "description" not in field and (text := find_meaning(paragraphs, name)):
            field["description"] = text
    return schema
