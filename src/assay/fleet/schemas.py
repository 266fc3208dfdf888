"""Exports a JSON Schema for every kind of file, for editors: `python -m assay.fleet.schemas [ROOT]`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from assay.fleet.kinds import KINDS
from assay.fleet.variables import NodeVariables

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by the name of its file."""
    specs = {f"{kebab(kind)}.json": {"$schema": DIALECT, **model.model_json_schema()} for kind, model in KINDS.items()}
    return {**specs, "inventory.json": inventory_schema()}


def kebab(kind: str) -> str:
    """Return `node-spec` for `NodeSpec`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind).lower()


def inventory_schema() -> dict[str, Any]:
    """Return the schema of an inventory file: groups, in which any variable may stand at any level."""
    variables = NodeVariables.model_json_schema()
    defs = variables.pop("$defs", {})
    variables.pop("required")
    vars_, group = {"$ref": "#/$defs/NodeVariables"}, {"$ref": "#/$defs/Group"}
    nothing = {"type": "null"}
    defs["NodeVariables"] = variables
    defs["Group"] = {
        "anyOf": [
            nothing,
            {
                "type": "object",
                "properties": {
                    "vars": {"anyOf": [vars_, nothing]},
                    "hosts": {"type": ["object", "null"], "additionalProperties": {"anyOf": [vars_, nothing]}},
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


def text(schema: dict[str, Any]) -> str:
    """Return a schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write(root: Path) -> list[Path]:
    """Write every schema below `root/specs/schemas` and return their paths."""
    folder = root / "specs" / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, schema in schemas().items():
        (folder / name).write_text(text(schema), encoding="utf-8")
        written.append(folder / name)
    return written


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
