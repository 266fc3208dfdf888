"""HTTP answers as the Redfish protocol requires them: headers, etags, and query options, with `$filter`."""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from assay.lab.bmc.authentication import RedfishErrorResponse
from assay.lab.bmc.resource_tree import Resource, ResourceTree, ResourceView

COMMON_HEADERS = {"OData-Version": "4.0", "Cache-Control": "no-cache"}
UNEXPANDED_KEYS = ("Links", "RedundancyGroup")
EXPAND_PATTERN = re.compile(r"[.*](\(\$levels=(\d+)\))?")
SUPPORTED_QUERY_OPTIONS = {"$expand", "$filter", "$skip", "$top"}
MAX_LEVELS = 4

ResourceTest = Callable[[Mapping[str, Any]], bool]
COMPARE = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
COMPARISON = re.compile(r"([\w/@.]+) (eq|ne|gt|ge|lt|le) ('(?:[^']|'')*'|[^\s()']+)")


def parse_filter(text: str) -> ResourceTest:
    """Return the test of a `$filter`: a property compared with a literal. Raises a 400 for any other text."""
    match = COMPARISON.fullmatch(text)
    if match is None:
        reason = f"$filter={text} is not valid, or more than one comparison"
        raise RedfishErrorResponse(400, "QueryParameterValueFormatError", reason, text, "$filter")
    path, compare, expected = match[1], COMPARE[match[2]], _value(match[3])

    def test(resource: Mapping[str, Any]) -> bool:
        actual = _property(resource, path)
        if isinstance(expected, datetime) and isinstance(actual, str):
            actual = _time(actual)
        try:
            return bool(compare(actual, expected))
        except TypeError:
            return False

    return test


def _property(resource: Mapping[str, Any], path: str) -> Any:
    part: Any = resource
    for step in path.split("/"):
        part = part.get(step) if isinstance(part, Mapping) else None
    return part


def _value(literal: str) -> Any:
    """Return the value of a literal: 'text', a number, true, false, null, a time, else the word itself."""
    if literal.startswith("'"):
        text = literal[1:-1].replace("''", "'")
        return _time(text) or text
    named = {"true": True, "false": False, "null": None}
    if literal in named:
        return named[literal]
    try:
        return float(literal)
    except ValueError:
        return _time(literal) or literal


def _time(text: str) -> datetime | None:
    if not re.match(r"\d{4}-\d\d-\d\dT", text):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None


def json_answer(body: Any, status: int = 200, **headers: str) -> Response:
    """Return a JSON answer; underscores in header names stand for hyphens."""
    named = {name.replace("_", "-"): content for name, content in headers.items()}
    content = json.dumps(body, separators=(",", ":")).encode()
    return Response(content, status, {**COMMON_HEADERS, **named}, "application/json;charset=utf-8")


def resource_answer(body: Resource, status: int = 200, **headers: str) -> Response:
    """Return an answer that carries a resource, with its etag."""
    tag = etag(body)
    kind = body.get("@odata.type", "#ServiceRoot").lstrip("#")
    schema = f"<http://redfish.dmtf.org/schemas/v1/{quote(kind.rsplit('.', 1)[0])}.json>; rel=describedby"
    return json_answer({**body, "@odata.etag": tag}, status, ETag=tag, Link=schema, **headers)


def error_answer(error: RedfishErrorResponse) -> Response:
    """Return the answer for an error."""
    return json_answer(error.body(), error.status, **error.headers)


def no_content_answer(**headers: str) -> Response:
    """Return the answer of an action that was done: 204."""
    return Response(
        None, 204, {**COMMON_HEADERS, **{name.replace("_", "-"): content for name, content in headers.items()}}
    )


def etag(body: Resource) -> str:
    """Return the strong etag of a resource."""
    return f'"{hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]}"'


def apply_query_options(tree: ResourceTree, view: ResourceView, body: Resource, query: Mapping[str, str]) -> Resource:
    """Apply $filter, $skip and $top, and $expand, in the specification's order. Raises a 400 or 501."""
    for name in query:
        if name.startswith("$") and name not in SUPPORTED_QUERY_OPTIONS:
            raise RedfishErrorResponse(501, "QueryNotSupported", f"The query parameter {name} is not supported", name)
    if "$filter" in query:
        body = _filtered(tree, view, body, parse_filter(query["$filter"]))
    body = _page(body, query)
    if "$expand" in query:
        body = _expanded(tree, view, body, _levels(query["$expand"]))
    return body


def _filtered(tree: ResourceTree, view: ResourceView, body: Resource, is_passing: ResourceTest) -> Resource:
    """Return a collection with the members that pass. A member that is only a link is read first."""
    if "Members" not in body:
        raise RedfishErrorResponse(400, "QueryNotSupportedOnResource", "Only collections can be filtered")
    read = [(member, member if len(member) > 1 else tree.read(view, member["@odata.id"])) for member in body["Members"]]
    passing = [member for member, resource in read if is_passing(resource)]
    return {**body, "Members": passing, "Members@odata.count": len(passing)}


def _page(body: Resource, query: Mapping[str, str]) -> Resource:
    if not {"$skip", "$top"} & set(query):
        return body
    if "Members" not in body:
        raise RedfishErrorResponse(400, "QueryNotSupportedOnResource", "Only collections can be paged")
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
        raise RedfishErrorResponse(400, "QueryParameterValueTypeError", f"{name} must be a number", query[name], name)
    return int(query[name])


def _levels(expand: str) -> int:
    match = EXPAND_PATTERN.fullmatch(expand)
    if match is None:
        text = f"$expand={expand} is not valid"
        raise RedfishErrorResponse(400, "QueryParameterValueFormatError", text, expand, "$expand")
    levels = int(match[2] or 1)
    if not 1 <= levels <= MAX_LEVELS:
        text = f"$levels must be 1 to {MAX_LEVELS}"
        raise RedfishErrorResponse(400, "QueryParameterOutOfRange", text, expand, "$expand", f"1-{MAX_LEVELS}")
    return levels


def _expanded(tree: ResourceTree, view: ResourceView, body: Resource, levels: int) -> Resource:
    """Return a resource with its subordinate ones, `levels` deep. References below `UNEXPANDED_KEYS` stay."""

    def follow(part: Any) -> Any:
        if isinstance(part, dict) and set(part) == {"@odata.id"}:
            subordinate = tree.read(view, part["@odata.id"])
            deeper = _expanded(tree, view, subordinate, levels - 1) if levels > 1 else subordinate
            return {**deeper, "@odata.etag": etag(subordinate)}
        return [follow(item) for item in part] if isinstance(part, list) else part

    return {name: part if name in UNEXPANDED_KEYS else follow(part) for name, part in body.items()}
