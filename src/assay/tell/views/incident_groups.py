"""Incidents of one kind on any number of nodes: the lines of the fleet's page, the cards and categories of reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from assay.decide.faults.incidents import Symptom
from assay.model.facts import frozen
from assay.model.faults.fault_record import SEVERITIES, FaultSeverity
from assay.model.specs.fault_catalog import FaultCatalog


class IncidentMember(NamedTuple):
    """An incident of a node (of a rack or a fabric, in a report): its symptoms, the cause first, and how it is now."""

    holder: str
    symptoms: tuple[Symptom, ...]
    now: str = ""


@frozen
class IncidentGroup:
    """Incidents of one kind, in the words of the fault catalogue. `severity` is the worst of their causes."""

    title: str
    severity: FaultSeverity
    members: tuple[IncidentMember, ...]

    @property
    def holders(self) -> tuple[str, ...]:
        """The nodes, each once."""
        return tuple(dict.fromkeys(member.holder for member in self.members))

    @property
    def is_over(self) -> bool:
        """Whether nothing of them is there any more."""
        return all(symptom.ended_at for member in self.members for symptom in member.symptoms)


def group_incidents(catalog: FaultCatalog | None, members: Iterable[IncidentMember]) -> list[IncidentGroup]:
    """Return the incidents by what their causes are, the widest first."""
    by_kind: dict[str, list[IncidentMember]] = defaultdict(list)
    for member in members:
        by_kind[member.symptoms[0].fault_class].append(member)
    groups = [
        IncidentGroup(
            title=name_kind(catalog, kind),
            severity=min((member.symptoms[0].severity for member in alike), key=SEVERITIES.index),
            members=tuple(alike),
        )
        for kind, alike in by_kind.items()
    ]
    return sorted(groups, key=lambda group: (-len(group.holders), SEVERITIES.index(group.severity), group.title))


def name_kind(catalog: FaultCatalog | None, kind: str) -> str:
    """Return what happened, with the fault class; a check that has none is its own name."""
    words = catalog.describe(kind) if catalog else kind
    return f"{words} ({kind})" if words != kind else kind
