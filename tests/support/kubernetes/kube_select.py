"""Selectors of lists, as an API server understands them; what it does not support is refused."""

from __future__ import annotations

from typing import Any

FIELDS = {
    "nodes": {"metadata.name", "spec.unschedulable"},
    "pods": {
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.schedulerName",
        "status.phase",
        "status.nominatedNodeName",
    },
}


class BadSelector(Exception):
    """A field label that is not supported."""


def supported(resource: str, text: str) -> str:
    """Return a field selector. Raises BadSelector for a field by which the resource cannot be selected."""
    for term in filter(None, text.split(",")):
        path = term.partition("=")[0].rstrip("!")
        if path not in FIELDS.get(resource, {"metadata.name"}):
            raise BadSelector(f"field label not supported: {path}")
    return text


def by_fields(text: str, thing: dict[str, Any]) -> bool:
    """Say whether an object has the fields that a field selector asks for."""
    return all(_holds(term, thing) for term in text.split(",") if term)


def by_labels(text: str, thing: dict[str, Any]) -> bool:
    """Say whether an object has the labels that a label selector (equality only) asks for."""
    labels = thing["metadata"].get("labels") or {}
    for term in filter(None, text.split(",")):
        key, sign, value = term.partition("=")
        if (labels.get(key) != value.lstrip("=")) if sign else (key not in labels):
            return False
    return True


def selected(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Say whether a selector of a spec selects labels; the fake knows `matchLabels`, and refuses the rest."""
    assert set(selector) <= {"matchLabels"}, selector
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _holds(term: str, thing: dict[str, Any]) -> bool:
    path, _, value = term.replace("==", "=").partition("=")
    unequal = path.endswith("!")
    return (_at(thing, path.rstrip("!")) == value) is not unequal


def _at(thing: dict[str, Any], path: str) -> str:
    found: Any = thing
    for part in path.split("."):
        found = (found or {}).get(part)
    return {None: "", True: "true", False: "false"}.get(found, found)
