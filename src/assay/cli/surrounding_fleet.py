"""Finds the specs for verbs that also work outside a fleet repository: the named one, this folder's, or assay's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.node import Node
    from assay.model.specs.fault_catalog import FaultCatalog


def load_surrounding_fleet(fleet: Path | None) -> tuple[Fleet, dict[str, Node]]:
    """Return the named fleet, or the one in the current folder, with its nodes; else the shipped specs, without nodes.

    Raises AssayError if the named folder is not a fleet repository.
    """
    from assay.declare.fleet_loader import load_fleet
    from assay.declare.starter.new_repository import find_example

    root = fleet if fleet is not None else Path()
    if (root / "specs" / "faults").is_dir():
        loaded = load_fleet(root)
        return loaded, dict(loaded.nodes)
    if fleet is not None:
        raise AssayError("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    return load_fleet(find_example()), {}


def load_surrounding_catalog(fleet: Path | None) -> FaultCatalog:
    """Return the fault catalogue of the named fleet, or of the current folder, else the shipped one.

    Mistakes in other specs do not matter. Raises AssayError for a mistake in a catalogue, or if a named fleet has none.
    """
    from assay.declare.starter.new_repository import find_example
    from assay.model.specs.fault_catalog import merge_catalogs

    catalogs = _read_catalogs(fleet if fleet is not None else Path())
    if fleet is not None and not catalogs:
        raise AssayError("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    try:
        return merge_catalogs(catalogs or _read_catalogs(find_example()))
    except ValueError as error:
        fix = "`assay check` names the lines"
        raise AssayError(str(error), where=str((fleet or Path()) / "specs"), fix=fix) from None


def _read_catalogs(root: Path) -> list[FaultCatalog]:
    """Return the fault catalogues of a fleet, none if there is no fleet. Raises AssayError for a mistake in one."""
    from assay.declare.repository.repository_tree import WorkingFolder
    from assay.declare.spec_reader import read_specs
    from assay.model.specs.fault_catalog import FaultCatalog

    specs, rejected = read_specs(WorkingFolder(root.absolute()))
    for document in rejected:
        if document.kind == "FaultCatalog" and document.problems:
            first = document.problems[0]
            raise AssayError(first.message, where=f"{root / first.where}", fix=first.fix)
    return [entry.spec for entry in specs if isinstance(entry.spec, FaultCatalog)]
