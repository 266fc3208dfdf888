"""Reads the spec documents below `specs/` into models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.fleet.document import Document, read_file
from assay.fleet.kinds import KINDS
from assay.fleet.marks import Marks, Unreadable
from assay.fleet.problem import Problem
from assay.fleet.violations import violations
from assay.model.spec import Spec


@dataclass(frozen=True)
class SpecFile:
    """One spec and the file it stands in."""

    spec: Spec
    document: Document

    @property
    def key(self) -> str:
        """`NodeSpec/hgx-h100`."""
        return f"{self.spec.kind}/{self.spec.name}"

    def lines(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the file and line of every entry, by dotted path; `""` is the document."""
        yield (self.key, ""), self.document.where()
        yield from self._lines(self.document.marks, "")

    def _lines(self, marks: Marks | int, above: str) -> Iterator[tuple[tuple[str, str], str]]:
        for step, below in marks.of.items() if isinstance(marks, Marks) else ():
            path = f"{above}.{step}" if above else str(step)
            at = below.at if isinstance(below, Marks) else below
            yield (self.key, path), self.document.line_at(at)
            yield from self._lines(below, path)


@dataclass(frozen=True)
class Refused:
    """A spec that could not be read: what is known of it, and why not. `kind` or `name` may be unknown ("")."""

    problems: list[Problem]
    kind: str = ""
    name: str = ""


def read_specs(root: Path) -> tuple[list[SpecFile], list[Refused]]:
    """Read every YAML file below `root/specs`, in order of their paths."""
    found = [read_spec(path, path.relative_to(root).as_posix()) for path in spec_paths(root)]
    return [one for one in found if isinstance(one, SpecFile)], [one for one in found if isinstance(one, Refused)]


def spec_paths(root: Path) -> list[Path]:
    """Return the YAML files below `root/specs`."""
    return sorted(path for path in (root / "specs").rglob("*") if path.suffix in (".yaml", ".yml") and path.is_file())


def read_spec(path: Path, file: str) -> SpecFile | Refused:
    """Read one spec document, or say what is wrong with it."""
    try:
        document = read_file(path, file)
    except Unreadable as wrong:
        return Refused([wrong.as_problem()])
    if not isinstance(document.data, dict):
        said = "a spec is a mapping that has a kind"
        return Refused([_problem(document, (), "ASY0003", said, "begin with `kind:`")])
    kind, name = document.data.get("kind"), document.data.get("name")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        said = f"kind {kind!r} is not known" if kind else "kind is missing"
        return Refused([_problem(document, ("kind",), "ASY0002", said, f"use one of {', '.join(KINDS)}")])
    try:
        return SpecFile(model.model_validate(document.data), document)
    except ValidationError as error:
        problems = [_problem(document, at, "ASY0003", what, fix) for at, what, fix in violations(error, model)]
        return Refused(problems, model.__name__, name if isinstance(name, str) else "")


def _problem(document: Document, path: tuple[Any, ...], code: str, message: str, fix: str) -> Problem:
    line, column = document.place(path)
    return Problem(document.file, line, column, code, "error", message, fix)
