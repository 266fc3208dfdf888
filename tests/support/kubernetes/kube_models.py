"""The judge of the fake: the official client's own models. What they do not have is refused, in and out."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

from kubernetes import client

KINDS = {
    "nodes": "V1Node",
    "pods": "V1Pod",
    "configmaps": "V1ConfigMap",
    "podtemplates": "V1PodTemplate",
    "daemonsets": "V1DaemonSet",
    "poddisruptionbudgets": "V1PodDisruptionBudget",
    "priorityclasses": "V1PriorityClass",
    "events": "EventsV1Event",
}
_api = client.ApiClient()


def kind_of(resource: str) -> str:
    """Return the kind of a resource, as its objects have it."""
    return KINDS[resource].rpartition("V1")[2]


class Unfaithful(Exception):
    """An object that the client's model of it would lose something of, or does not accept."""


def judged(model: str, body: Any) -> Any:
    """Return a body that the client's model accepts whole and gives back as it was. Raises Unfaithful."""
    try:
        _model(model).model_validate(body)
        read = _api.deserialize(json.dumps(body), model, "application/json")
    except ValueError as error:
        raise Unfaithful(f"{model}: {error}") from None
    back = _api.sanitize_for_serialization(read)
    if _plain(back) != _plain(body):
        raise Unfaithful(f"{model}: {_lost(_plain(body), _plain(back))}")
    return body


@cache
def _model(name: str) -> Any:
    return getattr(client, name)


def _plain(value: Any) -> Any:
    """Return a value without what means the same: empty entries, and spellings of a time."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, str) and len(value) > 18 and value[4:5] == "-" and value[10:11] == "T":
        return datetime.fromisoformat(value).isoformat()
    return value


def _lost(said: Any, read: Any, path: str = "") -> str:
    if isinstance(said, dict) and isinstance(read, dict):
        for key in said:
            if said[key] != read.get(key):
                return _lost(said[key], read.get(key), f"{path}.{key}")
    return f'unknown field or value "{path}": {said!r} reads as {read!r}'
