"""Finds the cost assumptions of a fleet; a fleet that has none uses those that assay ships."""

from __future__ import annotations

from dataclasses import dataclass

from assay.fleet.repository_tree import WorkingFolder
from assay.fleet.spec_reader import read_specs
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.cost_assumptions import CostAssumptions
from assay.starter.new_repository import find_example

COSTS_FOLDER = "specs/costs"


@dataclass(frozen=True)
class _CostsFolder:
    """The cost assumptions of a repository, and nothing else of it."""

    folder: WorkingFolder

    def files(self, folder: str) -> list[str]:
        return self.folder.files(COSTS_FOLDER) if COSTS_FOLDER.startswith(folder) else []

    def read(self, path: str, most: int) -> bytes:
        return self.folder.read(path, most)


def find_cost_assumptions(fleet: Fleet) -> tuple[CostAssumptions, str]:
    """Return the cost assumptions, and where they stand (`file:line`).

    Raises AssayError if the fleet has more than one document of them.
    """
    known = [costs for costs in fleet.cost_assumptions.values() if not _is_extended(fleet, costs.name)]
    if len(known) > 1:
        names = ", ".join(costs.name for costs in known)
        raise AssayError(f"the fleet has {len(known)} cost assumptions: {names}", where="specs", fix="keep one of them")
    if known:
        return known[0], fleet.lines.get((f"CostAssumptions/{known[0].name}", ""), COSTS_FOLDER)
    shipped, _ = read_specs(_CostsFolder(WorkingFolder(find_example())))
    found = next(entry.spec for entry in shipped if isinstance(entry.spec, CostAssumptions))
    return found, "as shipped with assay"


def _is_extended(fleet: Fleet, name: str) -> bool:
    return any(costs.extends == name for costs in fleet.cost_assumptions.values())
