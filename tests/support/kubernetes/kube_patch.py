"""The three kinds of patch, as far as they are used; a directive that the fake does not speak is refused."""

from __future__ import annotations

import copy
from typing import Any

MERGED_BY = {"status.conditions": "type", "status.addresses": "type"}
"""Lists of a strategic merge patch that merge by a key (the Go types' `patchMergeKey`). `spec.taints` is none."""


class BadPatch(Exception):
    """A patch that cannot be applied."""


def patched(content_type: str, thing: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Return an object after a patch. Raises BadPatch."""
    match content_type.partition(";")[0]:
        case "application/strategic-merge-patch+json":
            return _merged(thing, patch, "", strategic=True)
        case "application/merge-patch+json":
            return _merged(thing, patch, "", strategic=False)
        case "application/json-patch+json":
            return _operated(thing, patch)
        case other:
            raise BadPatch(f"the body of the request was in an unknown format: {other}")


def _merged(old: Any, patch: Any, path: str, strategic: bool) -> Any:
    if isinstance(patch, list) and strategic and (key := MERGED_BY.get(path)):
        return _merged_list(old or [], patch, key)
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if any(key.startswith("$") for key in patch):
        raise BadPatch(f"this fake does not speak {sorted(patch)}")
    new = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = _merged(new.get(key), value, f"{path}.{key}".lstrip("."), strategic)
    return new


def _merged_list(old: list[Any], patch: list[Any], key: str) -> list[Any]:
    new = [dict(one) for one in old]
    for wanted in patch:
        known = next((one for one in new if one[key] == wanted[key]), None)
        if known is None:
            new.append(dict(wanted))
        else:
            known.update(wanted)
    return new


def _operated(thing: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    new = copy.deepcopy(thing)
    for one in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:]]
        place: Any = new
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        match one["op"]:
            case "test":
                if place.get(last) != one["value"]:
                    raise BadPatch(f"testing value {one['path']} failed")
            case "add" | "replace":
                place[last] = one["value"]
            case "remove":
                del place[last]
            case other:
                raise BadPatch(f"this fake does not speak {other}")
    return new
