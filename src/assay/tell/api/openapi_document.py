"""The OpenAPI 3.1 document, from the same list of endpoints and the same models that answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from assay.declare.schemas import build_list_schema
from assay.tell.api.endpoints import ENDPOINTS, ApiEndpoint, ApiQuery, EventsQuery
from assay.tell.api.machine_reports import describe_reports
from assay.tell.api.order_routes import OPERATIONS_PATH, describe_orders

API = "/api/v1"
SCHEMAS = "#/components/schemas/{model}"
REFUSALS = {
    "400": "The body ended early",
    "401": "No token, no login, or not a good one",
    "403": "Not for this visitor",
    "404": "There is nothing of this name, or the visitor may not know of it",
    "408": "The body came too slowly",
    "413": "The body is too long",
    "414": "The query is too long",
    "422": "A field is wrong",
    "429": "Too many refusals; wait",
    "503": "Too many requests at once; wait",
}
ARCHIVE_PATH, ARCHIVE_TYPE = "/diagnostics/{file}", "application/zip"
PROBLEM = {
    "type": "object",
    "description": "Why a request was refused, as RFC 9457 has it. `error` repeats `detail`.",
    "properties": {name: {"type": "string"} for name in ("type", "title", "detail", "error")}
    | {"status": {"type": "integer"}},
    "required": ["type", "title", "status", "detail"],
}
CONFLICT = {"409": "It cannot be ordered now, or somebody gave another order since `after`"}


@cache
def build_openapi_document() -> dict[str, Any]:
    """Return the document."""
    schemas: dict[str, Any] = {"Problem": PROBLEM}
    paths = {f"{API}{endpoint.path}": {"get": _describe(endpoint, schemas)} for endpoint in ENDPOINTS}
    for path, (summary, body, answer) in describe_orders().items():
        paths.setdefault(f"{API}{path}", {})["post"] = _describe_post(path, summary, body, answer, schemas, CONFLICT)
    for path, (summary, body, answer) in describe_reports().items():
        paths[f"{API}{path}"] = {"post": _describe_post(path, summary, body, answer, schemas)}
    paths[f"{API}/events"] = {"get": _describe_stream()}
    paths[f"{API}{ARCHIVE_PATH}"] = {"get": _describe_archive()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "assay", "version": version("assay-fleet"), "description": "The fleet, as JSON."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _describe(endpoint: ApiEndpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the operation of an endpoint, and add what its answer is made of to `schemas`."""
    schema = _describe_answer(endpoint.answer, schemas)
    answers = {
        "200": {"description": endpoint.summary, "content": {"application/json": {"schema": schema}}},
        "304": {"description": "As the ETag in If-None-Match says"},
        **describe_refusals(),
    }
    return {
        "summary": endpoint.summary,
        "parameters": [*_describe_path(endpoint.path), *_describe_query(endpoint.query)],
        "responses": answers,
    }


def _describe_post(
    path: str,
    summary: str,
    body: Any,
    answer: Any,
    schemas: dict[str, Any],
    refusals: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the operation of an order or a report; `refusals` are those that only it has."""
    content = {"application/json": {"schema": _describe_model(body, schemas)}}
    reply = {"application/json": {"schema": _describe_answer(answer, schemas)}}
    answers = {"200": {"description": "What became of it", "content": reply}}
    if path == OPERATIONS_PATH:
        answers["202"] = {"description": "It is accepted; the answer says where to follow it", "content": reply}
    return {
        "summary": summary,
        "parameters": _describe_path(path),
        "requestBody": {"required": True, "content": content},
        "responses": {**answers, **describe_refusals(refusals)},
    }


def _describe_answer(shape: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an answer, with what its fields mean, and add what it is made of to `schemas`."""
    built = build_list_schema(shape, is_closed=False, ref_template=SCHEMAS)
    schemas.update(built.get("$defs", {}))
    schema: dict[str, Any] = built["items"]
    return schema


def _describe_model(model: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a model, and add what it is made of to `schemas`."""
    schema = TypeAdapter(model).json_schema(ref_template=SCHEMAS, mode="serialization")
    schemas.update(schema.pop("$defs", {}))
    if "title" not in schema:
        return schema
    schemas[schema["title"]] = schema
    return {"$ref": SCHEMAS.format(model=schema["title"])}


def _describe_path(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _describe_stream() -> dict[str, Any]:
    stream = {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    last = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}
    summary = "The changes as they come, or those of an operation until it has ended"
    parameters = [*_describe_query(EventsQuery), last]
    return {"summary": summary, "parameters": parameters, "responses": {"200": stream, **describe_refusals()}}


def _describe_archive() -> dict[str, Any]:
    archive = {"type": "string", "format": "binary"}
    answer = {"description": "The archive", "content": {ARCHIVE_TYPE: {"schema": archive}}}
    summary = "What was collected of a node before a restart; `files` of a ticket names it"
    return {
        "summary": summary,
        "parameters": _describe_path(ARCHIVE_PATH),
        "responses": {"200": answer, **describe_refusals()},
    }


def _describe_query(query: type[ApiQuery]) -> list[dict[str, Any]]:
    fields = query.model_json_schema().get("properties", {})
    return [{"name": name, "in": "query", "schema": schema} for name, schema in fields.items()]


def describe_refusals(others: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Return the answers to refused requests."""
    content = {"application/problem+json": {"schema": {"$ref": SCHEMAS.format(model="Problem")}}}
    return {status: {"description": text, "content": content} for status, text in {**REFUSALS, **others}.items()}
