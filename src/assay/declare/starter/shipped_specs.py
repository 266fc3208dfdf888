"""Finds the one document of a kind that a fleet has; a fleet that has none uses the one that assay ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from assay.declare.repository.tree import WorkingFolder
from assay.declare.spec_reader import read_specs
from assay.declare.starter.new_repository import find_example
from assay.model.errors import AssayError
from assay.model.fleet import FIELD_OF_KIND, Fleet
from assay.model.specs.fabric.adapters import AdapterNames
from assay.model.specs.spec_document import SpecDocument
from assay.model.specs.trend_rules import TrendRules

Document = TypeVar("Document", bound=SpecDocument)
FOLDERS = {"TrendRules": "specs/trends", "AdapterNames": "specs/adapter-names"}


@dataclass(frozen=True)
class _OneFolder:
    """One folder of a repository, and nothing else of it."""

    tree: WorkingFolder
    path: str

    def files(self, folder: str) -> list[str]:
        return self.tree.files(self.path) if self.path.startswith(folder) else []

    def read(self, path: str, most: int) -> bytes:
        return self.tree.read(path, most)


def find_trend_rules(fleet: Fleet | None) -> TrendRules:
    """Return the trend rules of a fleet, or those that assay ships. Raises AssayError if the fleet has two."""
    return _find(fleet, TrendRules)


def find_adapter_names(fleet: Fleet | None) -> AdapterNames:
    """Return how adapters announce themselves, of a fleet or as assay ships it. Raises AssayError if it has two."""
    return _find(fleet, AdapterNames)


def _find(fleet: Fleet | None, model: type[Document]) -> Document:
    kind = model.__name__
    every: Mapping[str, Document] = getattr(fleet, FIELD_OF_KIND[kind]) if fleet else {}
    extended = {document.extends for document in every.values()}
    known = [document for document in every.values() if document.name not in extended]
    if len(known) > 1:
        names = ", ".join(document.name for document in known)
        message = f"the fleet has {len(known)} documents of kind {kind}: {names}"
        raise AssayError(message, where=FOLDERS[kind], fix="keep one of them")
    if fleet and known:
        return known[0]
    shipped, _ = read_specs(_OneFolder(WorkingFolder(find_example()), FOLDERS[kind]))
    return next(entry.spec for entry in shipped if isinstance(entry.spec, model))
