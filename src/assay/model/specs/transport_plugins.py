"""Checks a node's `transport` and its settings against the installed transports, the plug-ins of `assay.transports`.

The settings of assay's own transports are fields of NodeSettings. Those of other transports are checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError

from assay.model.errors import AssayError, ConflictError, FieldConflict
from assay.model.plugins import TRANSPORTS


class _TransportNames:
    """Lists the installed transports in a JSON Schema."""

    @staticmethod
    def __get_pydantic_json_schema__(schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "enum": TRANSPORTS.names()}


def _require_installed(name: str) -> str:
    if name in (names := TRANSPORTS.names()):
        return name
    expected = f"{', '.join(map(repr, names[:-1]))} or {names[-1]!r}"
    raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})


TransportName = Annotated[str, AfterValidator(_require_installed), _TransportNames()]
"""The name of an installed transport."""


def check_plugin_settings(variables: Mapping[Any, Any]) -> None:
    """Check a node's variables against the settings model of its transport, unless that is one of assay's own.

    Raises ConflictError for settings that do not fit, and for a transport that cannot be loaded.
    """
    name = variables.get("transport")
    if not isinstance(name, str) or name not in TRANSPORTS.names() or TRANSPORTS.is_own(name):
        return
    try:
        transport = TRANSPORTS.load(name)
    except AssayError as error:
        raise ConflictError(FieldConflict("ASY0004", ("transport",), error.what, error.fix)) from None
    if transport.settings_model is None:
        return
    try:
        transport.settings_model.model_validate(variables.get(transport.settings_name) or {})
    except ValidationError as error:
        raise ConflictError(*_list_conflicts(transport.settings_name, error)) from None


def _list_conflicts(variable: str, error: ValidationError) -> list[FieldConflict]:
    conflicts = []
    for found in error.errors(include_url=False, include_input=False, include_context=False):
        path = (variable, *found["loc"])
        message = f"{'.'.join(map(str, path))}: {found['msg']}"
        conflicts.append(FieldConflict("ASY0004", path, message, "correct it as the transport's documentation says"))
    return conflicts
