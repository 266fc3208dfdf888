"""What an API server remembers: objects with a resource version, who wrote which field, and chunks of a list."""

from __future__ import annotations

import base64
import copy
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.kubernetes.kube_models import KINDS, judged

Thing = dict[str, Any]
Key = tuple[str, str]
TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without"
    " the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
    " Continuing with the provided token results in an inconsistent list - objects that were created, modified, or"
    " deleted between the time the first chunk was returned and now may show up in the list."
)
TRACKED = (("spec",), ("status",), ("metadata", "annotations"))
"""The parts of an object whose writers are noted, field by field."""


class Store:
    """Objects by resource, namespace and name. Every object that is kept has passed the client's models."""

    def __init__(self) -> None:
        self.things: dict[str, dict[Key, Thing]] = {resource: {} for resource in KINDS}
        self.version = 1000
        self.oldest = 0

    def find(self, resource: str, namespace: str, name: str) -> Thing | None:
        return self.things[resource].get((namespace, name))

    def all(self, resource: str, namespace: str = "") -> Iterator[Thing]:
        for (where, _), thing in sorted(self.things[resource].items()):
            if not namespace or where == namespace:
                yield thing

    def add(self, resource: str, namespace: str, body: Thing) -> Thing:
        """Keep a new object; the server gives it a uid and a time."""
        thing = copy.deepcopy(body)
        meta = thing["metadata"]
        meta.update({"uid": str(uuid.uuid4()), "creationTimestamp": written()})
        if namespace:
            meta["namespace"] = namespace
        return self.keep(resource, thing)

    def keep(self, resource: str, thing: Thing) -> Thing:
        """Keep an object as it is now, under the next version, if anything of it has changed."""
        meta = thing["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        old = self.things[resource].get(key)
        if old is not None and _bare(old) == _bare(thing):
            return old
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        self.things[resource][key] = judged(KINDS[resource], thing)
        return thing

    def change(self, resource: str, thing: Thing, edit: Callable[[Thing], object]) -> Thing:
        """Change a copy of an object by `edit`, and keep it."""
        new = copy.deepcopy(thing)
        edit(new)
        return self.keep(resource, new)

    def remove(self, resource: str, thing: Thing) -> None:
        self.version += 1
        meta = thing["metadata"]
        self.things[resource].pop((meta.get("namespace", ""), meta["name"]), None)

    def chunk(self, things: list[Thing], limit: int, token: str) -> tuple[list[Thing], dict[str, Any]]:
        """Return one chunk and the list's metadata. Raises LookupError for a token that is too old."""
        start = 0
        if token:
            start, version = json.loads(base64.b64decode(token))
            if version < self.oldest:
                raise LookupError(TOO_OLD)
        end = start + limit if limit else len(things)
        meta: dict[str, Any] = {"resourceVersion": str(self.version)}
        if end < len(things):
            meta["continue"] = base64.b64encode(json.dumps([end, self.version]).encode()).decode()
            meta["remainingItemCount"] = len(things) - end
        return things[start:end], meta


def wrote(old: Thing, new: Thing, manager: str) -> None:
    """Note in `new` who wrote what is not as it was in `old`: what a manager writes is no other's any more."""
    entries = [copy.deepcopy(entry) for entry in new["metadata"].get("managedFields") or []]
    changed = {path: fields for path in TRACKED if (fields := _changed(_part(old, path), _part(new, path)))}
    for entry in entries:
        for path, fields in changed.items():
            owned = _fields(entry, path)
            for key in fields & owned.keys():
                del owned[key]
    if changed:
        mine = next((entry for entry in entries if entry["manager"] == manager), None)
        if mine is None:
            mine = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
            mine["fieldsV1"] = {}
            entries.append(mine)
        mine["time"] = written()
        for path, fields in changed.items():
            _fields(mine, path).update({key: {} for key in fields if key[2:] in _part(new, path)})
    new["metadata"]["managedFields"] = entries


def _part(thing: Thing, path: tuple[str, ...]) -> Thing:
    for key in path:
        thing = thing.get(key) or {}
    return thing


def _fields(entry: Thing, path: tuple[str, ...]) -> Thing:
    fields: Thing = entry["fieldsV1"]
    for key in path:
        fields = fields.setdefault(f"f:{key}", {})
    return fields


def _changed(before: Thing, after: Thing) -> set[str]:
    return {f"f:{key}" for key in {**before, **after} if before.get(key) != after.get(key)}


def written(in_s: float = 0.0) -> str:
    """Return a time as Kubernetes writes it, `in_s` seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=in_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _bare(thing: Thing) -> Thing:
    return {**thing, "metadata": {k: v for k, v in thing["metadata"].items() if k != "resourceVersion"}}
