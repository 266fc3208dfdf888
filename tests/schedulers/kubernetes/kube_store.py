"""What an API server remembers: objects with a resource version, who wrote which field, and chunks of a list."""

from __future__ import annotations

import base64
import copy
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from kube_models import KINDS, judged

Thing = dict[str, Any]
Key = tuple[str, str]


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
                raise LookupError("The provided continue parameter is too old")
        end = start + limit if limit else len(things)
        meta: dict[str, Any] = {"resourceVersion": str(self.version)}
        if end < len(things):
            meta["continue"] = base64.b64encode(json.dumps([end, self.version]).encode()).decode()
            meta["remainingItemCount"] = len(things) - end
        return things[start:end], meta


def wrote(old: Thing, new: Thing, manager: str) -> None:
    """Note in `new` who wrote what is not as it was in `old`: what a manager writes is no other's any more."""
    changed = {
        f"f:{part}": {f"f:{key}": {} for key in {**before, **after} if before.get(key) != after.get(key)}
        for part in ("spec", "status")
        for before, after in [(old.get(part) or {}, new.get(part) or {})]
    }
    entries = [copy.deepcopy(entry) for entry in new["metadata"].get("managedFields") or []]
    for entry in entries:
        for part, fields in changed.items():
            entry["fieldsV1"][part] = {k: v for k, v in entry["fieldsV1"].get(part, {}).items() if k not in fields}
    if any(changed.values()):
        mine = next((entry for entry in entries if entry["manager"] == manager), None)
        if mine is None:
            mine = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
            mine["fieldsV1"] = {}
            entries.append(mine)
        mine["time"] = written()
        for part, fields in changed.items():
            present = {key for key in fields if key[2:] in (new.get(part[2:]) or {})}
            mine["fieldsV1"].setdefault(part, {}).update({key: {} for key in present})
    new["metadata"]["managedFields"] = entries


def written(in_s: float = 0.0) -> str:
    """Return a time as Kubernetes writes it, `in_s` seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=in_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _bare(thing: Thing) -> Thing:
    return {**thing, "metadata": {k: v for k, v in thing["metadata"].items() if k != "resourceVersion"}}
