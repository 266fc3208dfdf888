"""The change of one limit in the text of a spec, as the diff of a pull request. Writes nothing."""

from __future__ import annotations

import json
from difflib import unified_diff

import yaml

from assay.model.errors import AssayError


def make_limit_diff(file: str, text: str, name: str, value: float, source: str) -> str:
    """Return the unified diff that gives the limit `name` in the text of `file` another value and source.

    Everything else stays as it is, comments too. Raises AssayError where the text has no such limit.
    """
    fields = _find_fields(file, text, name)
    changed = text
    words = {"value": f"{value:.9g}", "source": json.dumps(source, ensure_ascii=False)}
    for key, node in sorted(fields.items(), key=lambda one: -one[1].start_mark.index):
        if key in words:
            changed = changed[: node.start_mark.index] + words[key] + changed[node.end_mark.index :]
    old, new = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    return "".join(unified_diff(old, new, f"a/{file}", f"b/{file}", n=1))


def _find_fields(file: str, text: str, name: str) -> dict[str, yaml.Node]:
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    for step in ("limits", name):
        node = _read_mapping(node).get(step)
    fields = _read_mapping(node)
    if "value" not in fields:
        raise AssayError(f"there is no value of the limit {name}", where=file, fix="change it by hand")
    return fields


def _read_mapping(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
