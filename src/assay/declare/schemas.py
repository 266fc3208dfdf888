"""Makes JSON Schemas: of every kind of file, for editors (`python -m assay.declare.schemas [ROOT]`), and of answers.

Each field has its meaning: from `Field(description=…)`, or from the docstrings of the model and its bases. There,
"`field`: text" says what the field means, up to the next such label or the end of the paragraph. A field without a
label has the first sentence that names it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, GenerateJsonSchema
from pydantic_core import PydanticUndefined
from typing_extensions import is_typeddict

from assay.declare.spec_reader import NAMED_LISTS
from assay.model.facts import find_mark, read_hints
from assay.model.plugins import TRANSPORTS
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SPEC_KINDS, SpecDocument, load_spec_model

NAMES = r"`\w[\w: ]*`(?: \([^)]*\))?(?:(?:, | and |, and )`\w[\w: ]*`(?: \([^)]*\))?)*"
LABEL = re.compile(rf"(?:(?<=^)|(?<=[.;)] ))({NAMES}): ")
BULLET = re.compile(r"\n(?:[ ]*\n)+|\n(?=- )")
SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z`\"*{])")
NEXT_FIELD = re.compile(r"(?<=[.?!]) (?=`)")
NULL_SCHEMA = {"type": "null"}
LAYER_REQUIRED = ("kind", "name", "extends")
WHOLE_ONLY = ("required", "minProperties", "maxProperties")
NEVER_NULL = (*LAYER_REQUIRED, "description")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def describe_fields(model: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each field, as sentences; "" where nothing says it."""
    return {name: _describe_field(model, name) for name in model.model_fields}


def find_written_type(annotation: Any, metadata: Iterable[Any]) -> Any:
    """Return the type that people write: a validator may take more than the annotation, and says so in its schema."""
    taken = [getattr(entry, "json_schema_input_type", PydanticUndefined) for entry in metadata]
    return next((entry for entry in taken if entry not in (PydanticUndefined, Any)), annotation)


def list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from list_models(find_written_type(inner, metadata))
    else:
        for part in get_args(annotation):
            yield from list_models(part)


def list_models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return a model and every model that its fields hold, each once, in the order of the fields."""
    models: list[type[BaseModel]] = []
    waiting = [model]
    while waiting:
        current = waiting.pop(0)
        if current not in models:
            models.append(current)
            written = [find_written_type(field.annotation, field.metadata) for field in current.model_fields.values()]
            waiting[:0] = [part for annotation in written for part in list_models(annotation)]
    return models


def list_paragraphs(model: type) -> list[str]:
    """Return the paragraphs and list items of a class's own docstring, each on one line."""
    return [" ".join(part.removeprefix("- ").split()) for part in BULLET.split(inspect.cleandoc(model.__doc__ or ""))]


def _describe_field(model: type[BaseModel], name: str) -> str:
    if text := model.model_fields[name].description:
        return _finish_sentence(text)
    bases = [base for base in model.__mro__ if issubclass(base, BaseModel) and base is not BaseModel]
    return find_meaning([part for base in bases for part in list_paragraphs(base)], name)


def find_meaning(paragraphs: Iterable[str], name: str) -> str:
    """Return what paragraphs say of a field, as sentences; "" if nothing."""
    paragraphs = list(paragraphs)
    for paragraph in paragraphs:
        _, *pieces = LABEL.split(paragraph)
        for names, text in zip(pieces[::2], pieces[1::2], strict=True):
            if f"`{name}`" in names and (meaning := NEXT_FIELD.split(text)[0]):
                return _finish_sentence(meaning)
    mention = re.compile(rf"`{name}(?::[^`]*)?`")
    sentences = (sentence for paragraph in paragraphs for sentence in SENTENCE_END.split(paragraph))
    meaning = next(filter(mention.search, sentences), "")
    return _finish_sentence(meaning) if meaning else ""


def _finish_sentence(text: str) -> str:
    text = text.strip().rstrip(";,")
    text = text if text.endswith((".", "?", "!", ")")) else f"{text}."
    return text[:1].upper() + text[1:]


def build_schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by file name."""
    specs = {f"{to_kebab_case(kind)}.json": build_spec_schema(load_spec_model(kind)) for kind in SPEC_KINDS}
    return {**specs, "inventory.json": build_inventory_schema()}


def build_spec_schema(model: type[SpecDocument]) -> dict[str, Any]:
    """Return the schema of one kind: of a whole spec, or of one that `extends` another and holds the differences."""
    whole = _build_described_schema(model)
    defs = whole.pop("$defs", {})
    parts = {f"{name}.layer": _layer(part) for name, part in defs.items()}
    layer = _layer(whole) | {"required": list(LAYER_REQUIRED)}
    for field in NAMED_LISTS.get(model.__name__, ()):
        layer["properties"][field] = _allow_parts_by_name(layer["properties"][field])
    return {
        "$schema": DIALECT,
        "title": whole["title"],
        "description": whole["description"],
        "type": "object",
        "if": {"required": ["extends"]},
        "then": {"$ref": f"#/$defs/{model.__name__}.layer"},
        "else": {"$ref": f"#/$defs/{model.__name__}"},
        "$defs": {**defs, **parts, model.__name__: whole, f"{model.__name__}.layer": layer},
    }


def _build_described_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return pydantic's schema of a model, with the meaning of each field as its description."""
    schema = model.model_json_schema()
    parts = {part.__name__: part for part in list_models_below(model)}
    for name, part in [(model.__name__, schema), *schema.get("$defs", {}).items()]:
        meanings = describe_fields(parts[name]) if name in parts else {}
        for field, properties in part.get("properties", {}).items():
            if meanings.get(field):
                properties.setdefault("description", meanings[field])
    _refuse_other_keys(schema)
    return schema


def _refuse_other_keys(schema: Any) -> None:
    """Refuse keys that fit no pattern, as the model does: pydantic's schema lets them pass."""
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            _refuse_other_keys(part)
    if isinstance(schema, dict) and isinstance(schema.get("patternProperties"), dict):
        schema.setdefault("additionalProperties", False)


def _layer(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value in a spec that extends another: any part of the value, or null.

    Lists are not merged, so their items are unchanged (but see NAMED_LISTS). A required field cannot be null.
    """
    layer = {key: value for key, value in schema.items() if key not in WHOLE_ONLY}
    if "$ref" in layer:
        layer["$ref"] += ".layer"
    if "anyOf" in layer:
        layer["anyOf"] = [_layer(part) for part in layer["anyOf"]]
    if "properties" in layer:
        never_null = {*schema.get("required", ()), *NEVER_NULL}
        layer["properties"] = {
            name: _layer(part) if name in never_null else {"anyOf": [_layer(part), NULL_SCHEMA]}
            for name, part in layer["properties"].items()
        }
    if isinstance(layer.get("additionalProperties"), dict):
        layer["additionalProperties"] = {"anyOf": [_layer(layer["additionalProperties"]), NULL_SCHEMA]}
    if "patternProperties" in layer:
        patterns = layer["patternProperties"].items()
        layer["patternProperties"] = {pattern: {"anyOf": [_layer(part), NULL_SCHEMA]} for pattern, part in patterns}
    return layer


def _allow_parts_by_name(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a list in a layer: the whole list, or a mapping that changes its parts by name."""
    whole, *null = field.get("anyOf", [field])
    part = {"$ref": whole["items"]["$ref"] + ".layer"}
    by_name = {"type": "object", "additionalProperties": {"anyOf": [part, NULL_SCHEMA]}}
    return {"anyOf": [whole, by_name, *null]}


def to_kebab_case(kind: str) -> str:
    """Return `node-spec` for `NodeSpec`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind).lower()


def build_inventory_schema() -> dict[str, Any]:
    """Return the schema of an inventory file: nested groups, with any variable at any level."""
    variables = _build_described_schema(NodeVariables)
    defs = variables.pop("$defs", {})
    for transport in map(TRANSPORTS.load, TRANSPORTS.names()):
        if transport.settings_model and transport.settings_name not in variables["properties"]:
            settings = _build_described_schema(transport.settings_model)
            defs |= settings.pop("$defs", {})
            variables["properties"][transport.settings_name] = settings
    variables.pop("required")
    vars_ = {"$ref": "#/$defs/NodeVariables"}
    group = {"$ref": "#/$defs/Group"}
    defs["NodeVariables"] = variables
    defs["Group"] = {
        "anyOf": [
            NULL_SCHEMA,
            {
                "type": "object",
                "properties": {
                    "vars": {"anyOf": [vars_, NULL_SCHEMA]},
                    "hosts": {"type": ["object", "null"], "additionalProperties": {"anyOf": [vars_, NULL_SCHEMA]}},
                    "children": {"type": ["object", "null"], "additionalProperties": group},
                },
                "additionalProperties": False,
            },
        ]
    }
    return {
        "$schema": DIALECT,
        "title": "Inventory",
        "description": "An Ansible inventory in YAML: pools are groups, nodes are hosts.",
        "type": "object",
        "additionalProperties": group,
        "$defs": defs,
    }


def format_schema(schema: dict[str, Any]) -> str:
    """Return the text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_schemas(root: Path) -> list[Path]:
    """Write every schema below `root/specs/schemas` and return their paths."""
    folder = root / "specs" / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, schema in build_schemas().items():
        (folder / name).write_text(format_schema(schema), encoding="utf-8")
        written.append(folder / name)
    return written


def build_list_schema(shape: Any, *, is_closed: bool, ref_template: str = DEFAULT_REF_TEMPLATE) -> dict[str, Any]:
    """Return the schema of a list of a shape, since pydantic takes a configuration only for what stands around it.

    `is_closed`: objects have no other fields.
    """
    _load_types(shape)
    extra: Literal["forbid", "ignore"] = "forbid" if is_closed else "ignore"
    config = ConfigDict(use_attribute_docstrings=True, extra=extra, arbitrary_types_allowed=True)
    adapter: TypeAdapter[Any] = TypeAdapter(list[shape], config=config)
    return adapter.json_schema(mode="serialization", schema_generator=_ShapeSchema, ref_template=ref_template)


def _load_types(hint: Any) -> None:
    """Load the types below a shape which its modules import for type checkers only: pydantic looks for them there."""
    parts = get_args(hint)
    if isinstance(hint, type) and (is_dataclass(hint) or is_typeddict(hint)) and hint not in _LOADED:
        _LOADED.add(hint)
        parts = tuple(read_hints(hint).values())
    for part in parts:
        _load_types(part)


_LOADED: set[type] = set()


class _ShapeSchema(GenerateJsonSchema):
    """Describes each field by what its class says of it. Leaves out titles, which only repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 — the signature is pydantic's
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Whether a field is in every answer: one of a dataclass is, also if it has a default, unless its mark says."""
        if field["type"] == "dataclass-field":
            return not field.get("metadata", {}).get("omit")
        return super().field_is_required(field, total)

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema without the default: an answer leaves nothing out because of it."""
        return self.generate_inner(schema["schema"])

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        return _describe_fields(schema["cls"], super().typed_dict_schema(schema))

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        if hasattr(schema["cls"], "encode"):  # what JSON has as one text
            return {"type": "string"}
        shown: Any = {**schema, "schema": {**schema["schema"], "fields": list(self._list_shown(schema))}}
        return _describe_fields(schema["cls"], super().dataclass_schema(shown))

    def definitions_schema(self, schema: Any) -> dict[str, Any]:
        self._parts = {definition["ref"]: definition for definition in schema["definitions"]}
        return super().definitions_schema(schema)

    def _list_shown(self, schema: Any) -> Iterator[Any]:
        """Yield the fields of a dataclass that JSON has, under their keys."""
        marks = {each.name: find_mark(each) for each in fields(schema["cls"])}
        for field in schema["schema"]["fields"]:
            mark = marks[field["name"]]
            if mark.is_inline:
                held = field["schema"]
                yield from self._list_shown(self._parts[held["schema_ref"]] if "schema_ref" in held else held)
            elif not mark.is_internal:
                held = field["schema"]["schema"] if mark.omit else field["schema"]  # without its default
                held = held["schema"] if mark.omit and held["type"] == "nullable" else held
                about = {**field["metadata"], "omit": mark.omit}
                yield {**field, "serialization_alias": mark.key, "metadata": about, "schema": held}


def _describe_fields(shape: type, schema: dict[str, Any]) -> dict[str, Any]:
    """Fill in what the class and its bases say of fields without a text of their own. Return the schema."""
    for base in {*getattr(shape, "__orig_bases__", ()), *shape.__bases__}:
        if not (is_dataclass(base) or is_typeddict(base)):
            continue
        inherited = build_list_schema(base, is_closed=True)["$defs"][base.__name__]
        for name, field in inherited["properties"].items():
            if "description" in field:
                schema["properties"][name].setdefault("description", field["description"])
    paragraphs = list_paragraphs(shape)
    for name, field in schema["properties"].items():
        if "description" not in field and (text := find_meaning(paragraphs, name)):
            field["description"] = text
    return schema


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
