"""Answers as the Redfish protocol wants them: headers, etags, query options."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from assay.lab.bmc.errors import RedfishError
from assay.lab.bmc.filters import Filter
from assay.lab.bmc.tree import Resource, Tree, View

COMMON = {"OData-Version": "4.0", "Cache-Control": "no-cache"}
BESIDE = ("Links", "RedundancyGroup")
EXPAND = re.compile(r"[.*](\(\$levels=(\d+)\))?")
SUPPORTED = {"$expand", "$filter", "$select", "$skip", "$top", "only"}
MAX_LEVELS = 4


def json_answer(body: Any, status: int = 200, **headers: str) -> Response:
    """Return a JSON answer; underscores in header names stand for hyphens."""
    named = {name.replace("_", "-"): content for name, content in headers.items()}
    content = json.dumps(body, separators=(",", ":")).encode()
    return Response(content, status, {**COMMON, **named}, "application/json;charset=utf-8")


def resource_answer(body: Resource, status: int = 200, **headers: str) -> Response:
    """Return an answer that carries a resource, with its etag."""
    tag = etag(body)
    kind = body.get("@odata.type", "#ServiceRoot").lstrip("#")
    schema = f"<http://redfish.dmtf.org/schemas/v1/{quote(kind.rsplit('.', 1)[0])}.json>; rel=describedby"
    return json_answer({**body, "@odata.etag": tag}, status, ETag=tag, Link=schema, **headers)


def error_answer(error: RedfishError) -> Response:
    """Return the answer that says what was wrong."""
    return json_answer(error.body(), error.status, **error.headers)


def nothing(**headers: str) -> Response:
    """Return the answer of an action that was done: 204."""
    return Response(None, 204, {**COMMON, **{name.replace("_", "-"): content for name, content in headers.items()}})


def etag(body: Resource) -> str:
    """Return the strong etag of a resource."""
    return f'"{hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]}"'


def shaped(tree: Tree, view: View, body: Resource, query: Mapping[str, str]) -> Resource:
    """Apply `only`, $filter, $skip and $top, $expand and $select, in the specification's order. Raises a 400 or 501."""
    for name in query:
        if name.startswith("$") and name not in SUPPORTED:
            raise RedfishError(501, "QueryNotSupported", f"The query parameter {name} is not supported", name)
    if query.get("only"):
        raise RedfishError(400, "QueryParameterValueFormatError", "only takes no value", query["only"], "only")
    if "only" in query and len(body.get("Members", [])) == 1:
        body = tree.read(view, body["Members"][0]["@odata.id"])
    if "$filter" in query:
        body = _filtered(tree, view, body, Filter(query["$filter"]))
    body = _page(body, query)
    if "$expand" in query:
        body = _expanded(tree, view, body, _levels(query["$expand"]))
    return _selected(body, query["$select"]) if query.get("$select") else body


def _filtered(tree: Tree, view: View, body: Resource, wanted: Filter) -> Resource:
    """Keep the members that fit. What a member says it says whether or not it came whole."""
    if "Members" not in body:
        raise RedfishError(400, "QueryNotSupportedOnResource", "Only collections can be filtered")
    whole = [(one, one if len(one) > 1 else tree.read(view, one["@odata.id"])) for one in body["Members"]]
    fitting = [one for one, all_of_it in whole if wanted.fits(all_of_it)]
    return {**body, "Members": fitting, "Members@odata.count": len(fitting)}


def _page(body: Resource, query: Mapping[str, str]) -> Resource:
    if not {"$skip", "$top"} & set(query):
        return body
    if "Members" not in body:
        raise RedfishError(400, "QueryNotSupportedOnResource", "Only collections can be paged")
    skip, top = (_count(query, name) for name in ("$skip", "$top"))
    members = body["Members"][skip or 0 :]
    page = {**body, "Members": members if top is None else members[:top]}
    if top and len(members) > top:
        page["Members@odata.nextLink"] = f"{body['@odata.id']}?$skip={(skip or 0) + top}&$top={top}"
    return page


def _count(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    if not query[name].isdecimal():
        raise RedfishError(400, "QueryParameterValueTypeError", f"{name} must be a number", query[name], name)
    return int(query[name])


def _levels(how: str) -> int:
    match = EXPAND.fullmatch(how)
    if match is None:
        raise RedfishError(400, "QueryParameterValueFormatError", f"$expand={how} is not understood", how, "$expand")
    levels = int(match[2] or 1)
    if not 1 <= levels <= MAX_LEVELS:
        said = f"$levels must be 1 to {MAX_LEVELS}"
        raise RedfishError(400, "QueryParameterOutOfRange", said, how, "$expand", f"1-{MAX_LEVELS}")
    return levels


def _expanded(tree: Tree, view: View, body: Resource, levels: int) -> Resource:
    """Return a resource with those below it, so many levels deep; what is under `Links` stays a reference."""

    def follow(part: Any) -> Any:
        if isinstance(part, dict) and set(part) == {"@odata.id"}:
            found = tree.read(view, part["@odata.id"])
            tag = etag(found)
            deeper = _expanded(tree, view, found, levels - 1) if levels > 1 else found
            return {**deeper, "@odata.etag": tag}
        return [follow(item) for item in part] if isinstance(part, list) else part

    return {name: part if name in BESIDE else follow(part) for name, part in body.items()}


def _selected(body: Resource, names: str) -> Resource:
    wanted = {name.strip().split("/")[0] for name in names.split(",")}
    if not wanted & set(body) and "Members" not in body:
        raise RedfishError(
            400, "QueryParameterValueFormatError", f"$select={names} names no property", names, "$select"
        )
    return {name: part for name, part in body.items() if name in wanted or name.startswith(("@odata", "Members@"))}
