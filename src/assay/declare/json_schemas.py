"""Exports a JSON Schema for every kind of file, for editors: `python -m assay.declare.json_schemas [ROOT]`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from assay.declare.field_meanings import describe_fields, list_models_below
from assay.declare.spec_inheritance import NAMED_LISTS
from assay.model.plugins import TRANSPORTS
from assay.model.specs.node_settings import NodeVariables
from assay.model.specs.spec_document import SPEC_KINDS, SpecDocument, load_spec_model

NULL_SCHEMA = {"type": "null"}
LAYER_REQUIRED = ("kind", "name", "extends")
WHOLE_ONLY = ("required", "minProperties", "maxProperties")
NEVER_NULL = (*LAYER_REQUIRED, "description")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


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
    vars_, group = {"$ref": "#/$defs/NodeVariables"}, {"$ref": "#/$defs/Group"}
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


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
