"""Which checks are due: those for which a subject has the parts and, without a phase, whose evidence was collected.

A phase asks for its evidence, and what is missing there is an error. Without a phase, a fabric that nobody scanned is
not judged, nor is a load that nobody ran; the session says how many checks that are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Literal

from assay.fabric.weekly.week_evidence import format_week_subject
from assay.model.evidence import FABRIC_EVIDENCE_PREFIX
from assay.model.fleet import Fleet
from assay.model.outcome import read_whole
from assay.validate.judging.evidence_cache import EvidenceCache, ReadingUnavailable
from assay.validate.runs.command_line import NamedSubject
from assay.validate.runs.subjects import list_declared_checks, list_lacking

EvidenceKind = Literal["node", "whole_rack", "fabric", "week", "load"]
"""The kind of evidence that a check needs."""
FIXTURES_OF_EVIDENCE: tuple[tuple[EvidenceKind, frozenset[str]], ...] = (
    ("week", frozenset({"link_week", "switch_week", "fabric_week"})),
    ("fabric", frozenset({"link", "switch", "rail", "fabric"})),
    ("whole_rack", frozenset({"whole_rack"})),
)
NOT_COLLECTED: dict[EvidenceKind, str] = {
    "week": "no week of the fabric",
    "fabric": "no scan of the fabric",
    "load": "no load on the node",
}


def find_evidence_kind(fixtures: Collection[str]) -> EvidenceKind:
    """Return the kind of evidence that a check with these fixtures needs."""
    return next((kind for kind, names in FIXTURES_OF_EVIDENCE if names.intersection(fixtures)), "node")


class DueChecks:
    """The due checks of one session. `not_due` counts the others, by what is missing."""

    def __init__(self, fleet: Fleet, evidence: EvidenceCache) -> None:
        self.not_due = Counter[str]()
        self._fleet, self._evidence = fleet, evidence
        self._declared = {check.id: check for check in list_declared_checks(fleet)}
        self._collected: dict[tuple[EvidenceKind, str], bool] = {}

    def select_fitting(self, check: str, subjects: list[NamedSubject]) -> list[NamedSubject]:
        """Return the subjects that have what a check needs."""
        lacking = list_lacking(self._fleet, self._declared[check]) if subjects and check in self._declared else {}
        owners = [each.node or read_whole(each.id) for each in subjects]
        self.not_due.update(f"no {lacking[owner]}" for owner in owners if owner in lacking)
        return [each for each, owner in zip(subjects, owners, strict=True) if owner not in lacking]

    def select(self, fixtures: Collection[str], subjects: list[NamedSubject], *, active: bool) -> list[NamedSubject]:
        """Return the subjects on which a check with these fixtures is due. `active`: it judges a load."""
        kind: EvidenceKind = "load" if active else find_evidence_kind(fixtures)
        if kind not in NOT_COLLECTED:
            return subjects
        due = [subject for subject in subjects if self._is_collected(kind, self._name_document(kind, subject))]
        self.not_due[NOT_COLLECTED[kind]] += len(subjects) - len(due)
        return due

    def _name_document(self, kind: EvidenceKind, subject: NamedSubject) -> str:
        """Return the name of the evidence that a subject is judged on, "" if the fleet declares none."""
        if kind == "load":
            return subject.node
        fabric = self._fleet.nodes[subject.node].settings.fabric if subject.node else subject.subject.name
        if kind == "week":
            return format_week_subject(fabric) if fabric else ""
        return f"{FABRIC_EVIDENCE_PREFIX}{fabric}" if fabric in self._fleet.designs else ""

    def _is_collected(self, kind: EvidenceKind, name: str) -> bool:
        if (kind, name) not in self._collected:
            self._collected[kind, name] = not name or self._look(kind, name)
        return self._collected[kind, name]

    def _look(self, kind: EvidenceKind, name: str) -> bool:
        try:
            document = self._evidence.read_latest(name).evidence
        except ReadingUnavailable as missing:
            return bool(missing.where)  # there is a document that cannot be read: the check says why
        return kind != "load" or "active" in document.channels
