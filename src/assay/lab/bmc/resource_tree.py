"""The resources of a BMC by path, and the parts that resources are built of. A resource is a function of a view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from assay.lab.bmc.authentication import BmcLogins, not_found
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.facts import frozen

REDFISH_ROOT = "/redfish/v1"
Resource = dict[str, Any]
ResourceBuilder = Callable[..., Resource]


@frozen
class ResourceView:
    """What one request sees: the node's state at `now`, and the logins."""

    node: str
    state: VirtualNodeState
    now: datetime
    logins: BmcLogins


class ResourceTree:
    """Builders by path template. The ids in place of `{}` are the builder's arguments after the view."""

    def __init__(self, resources: Mapping[str, ResourceBuilder]) -> None:
        self._exact = {path: build for path, build in resources.items() if "{}" not in path}
        self._patterns = [(compile_path_template(path), build) for path, build in resources.items() if "{}" in path]

    def find(self, path: str) -> tuple[ResourceBuilder, tuple[str, ...]] | None:
        """Return the builder of a path and the ids in the path, None if no template fits."""
        if build := self._exact.get(path):
            return build, ()
        for pattern, build in self._patterns:
            if match := pattern.fullmatch(path):
                return build, match.groups()
        return None

    def read(self, view: ResourceView, path: str) -> Resource:
        """Return the resource at `path`, without its etag. Raises a 404 if there is none."""
        route = self.find(path)
        if route is None:
            raise not_found(path)
        build, ids = route
        try:
            body = build(view, *ids)
        except (LookupError, StopIteration):
            raise not_found(path) from None
        return {"@odata.id": path, **body}


def compile_path_template(path: str) -> re.Pattern[str]:
    """Return the pattern of a path template."""
    return re.compile(re.escape(path).replace(r"\{\}", "([^/]+)"))


def resource_link(path: str) -> dict[str, str]:
    """Return a reference to another resource, by its path below the root."""
    return {"@odata.id": REDFISH_ROOT + path}


def make_collection(kind: str, name: str, paths: Iterable[str]) -> Resource:
    """Return a collection of the resources at `paths` (below the root)."""
    members = [resource_link(path) for path in paths]
    return {
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": name,
        "Members": members,
        "Members@odata.count": len(members),
    }


def make_resource(schema: str, ident: str, name: str, **properties: Any) -> Resource:
    """Return a resource of a schema of DMTF in its version, such as `Chassis.v1_25_0`."""
    return {"@odata.type": f"#{schema}.{schema.partition('.')[0]}", "Id": ident, "Name": name, **properties}


def without_lacking(view: ResourceView, **properties: Any) -> dict[str, Any]:
    """Return the properties that this BMC has (fault `bmc.lacks`)."""
    lacks = view.state["box"]["lacks"]
    return {name: content for name, content in properties.items() if name not in lacks}


def make_status(health: str | None = "OK", state: str = "Enabled") -> dict[str, str | None]:
    """Return a Status object."""
    return {"State": state, "Health": health}


def find_numbered_item(items: list[Any], ident: str, kind: str = "") -> Any:
    """Return the item with the index in `ident`, such as 2 in DIMM_2 of the kind DIMM_. Raises LookupError."""
    if not (numbered := re.fullmatch(rf"{kind}(0|[1-9]\d{{0,5}})", ident)):
        raise LookupError(ident)
    return items[int(numbered[1])]
