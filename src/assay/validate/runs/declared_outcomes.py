"""What must be judged: every check of the catalogue, on every subject of its kind that the fleet declares."""

from __future__ import annotations

from collections.abc import Collection

from assay.model.fleet import Fleet
from assay.model.outcome import CheckSubject
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.validate.runs.node_selection import NodeSelection, list_node_subjects

PART_KINDS = ("gpu", "hca", "nic", "psu", "nvme")


def list_declared_outcomes(
    fleet: Fleet, node: str, phases: Collection[str] | None = None
) -> list[tuple[CheckDeclaration, CheckSubject]]:
    """Return every check × subject that must end in an outcome for a node in these phases (None: in any)."""
    checks = [check for check in list_declared_checks(fleet, phases) if check.subject in ("node", *PART_KINDS)]
    return [(check, subject) for check in checks for subject in list_node_subjects(fleet, node, check.subject)]


class DeclaredOutcomes:
    """`list_declared_outcomes` for many nodes of a fleet, in any phase, computed once for each NodeSpec."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._by_spec: dict[str, list[tuple[CheckDeclaration, str]]] = {}

    def of_node(self, node: str) -> tuple[tuple[CheckDeclaration, CheckSubject], ...]:
        """Return every check × subject that must end in an outcome for a node."""
        declared = self._fleet.nodes[node]
        if declared.spec not in self._by_spec:
            self._by_spec[declared.spec] = [
                (check, subject.part) for check, subject in list_declared_outcomes(self._fleet, node)
            ]
        outcomes = self._by_spec[declared.spec]
        subjects = {part: CheckSubject(declared.pool, node, part) for _, part in outcomes}
        return tuple((check, subjects[part]) for check, part in outcomes)


def list_selected_outcomes(
    selection: NodeSelection, phases: Collection[str] | None = None
) -> list[tuple[CheckDeclaration, CheckSubject, str]]:
    """Return every check × subject of a selection, with the subject's node ("" for racks and fabrics)."""
    return [
        (check, subject, node)
        for check in list_declared_checks(selection.fleet, phases)
        for subject, node in selection.subjects(check.subject)
    ]


def list_declared_checks(fleet: Fleet, phases: Collection[str] | None = None) -> list[CheckDeclaration]:
    """Return the declared checks of these phases (None or empty: of all)."""
    every = [check for catalog in fleet.check_catalogs.values() for check in catalog.checks]
    return [check for check in every if not phases or set(check.phases) & set(phases)]
