"""Specs as a check sees them: the values of the YAML, each with the file and line that it stands on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from assay.harness.silence import no_such
from assay.harness.told import told

if TYPE_CHECKING:  # the models of what no check asks for stay unread
    from assay.model.design import FabricDesign
    from assay.model.nodespec import NodeSpec

Lines = Mapping[tuple[str, str], str]


class SpecView:
    """A spec or a part of one. Scalars come back as plain values that remember their `source`.

    What was seen once is kept, so one view does for all checks; a list or a mapping comes back as a new one each time.
    """

    __slots__ = ("_document", "_lines", "_path", "_seen", "_spec")

    def __init__(self, spec: Any, document: str, path: str, lines: Lines) -> None:
        self._spec, self._document, self._path, self._lines = spec, document, path, lines
        self._seen: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Return a field. Raises Unjudgeable for a name that the spec does not have."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._seen:
            self._seen[name] = self._look(name)
        return _own(self._seen[name])

    def _look(self, name: str) -> Any:
        if not hasattr(self._spec, name):
            raise no_such(name, self._path or self._document, _fields(self._spec))
        return _seen(getattr(self._spec, name), self._document, _below(self._path, name), self._lines)

    def __repr__(self) -> str:
        return f"<{self._document} {self._path}>".replace(" >", ">")


class Limits:
    """The thresholds of a node's spec or a fabric's design: `limits.gpu_temperature` is a number with unit and line."""

    __slots__ = ("_lines", "_seen", "_spec")

    def __init__(self, spec: NodeSpec | FabricDesign, lines: Lines) -> None:
        self._spec, self._lines = spec, lines
        self._seen: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Return a limit. Raises Unjudgeable for one that the spec does not set."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._seen:
            self._seen[name] = self._look(name)
        return self._seen[name]

    def _look(self, name: str) -> Any:
        limit = self._spec.limits.get(name)
        document = f"{self._spec.kind}/{self._spec.name}"
        if limit is None:
            raise no_such(name, f"{document} limits", self._spec.limits)
        return told(limit.value, source=line_of(self._lines, document, f"limits.{name}"), unit=limit.unit)


def line_of(lines: Lines, document: str, path: str) -> str:
    """Return `file:line` of a value, or of the nearest thing around it that has one, or the document's name."""
    while path and (document, path) not in lines:
        path = path.rpartition(".")[0]
    return lines.get((document, path), document)


def _seen(value: Any, document: str, path: str, lines: Lines) -> Any:
    if isinstance(value, BaseModel):
        return SpecView(value, document, path, lines)
    if isinstance(value, Mapping):
        return {key: _seen(item, document, _below(path, key), lines) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_seen(item, document, _below(path, str(index)), lines) for index, item in enumerate(value)]
    return told(value, source=line_of(lines, document, path))


def _own(value: Any) -> Any:
    """Return a value that the check may do with as it likes."""
    if type(value) is list:
        return [_own(item) for item in value]
    if type(value) is dict:
        return {key: _own(item) for key, item in value.items()}
    return value


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fields(spec: Any) -> list[str]:
    return list(type(spec).model_fields) if isinstance(spec, BaseModel) else list(getattr(spec, "__slots__", ()))
