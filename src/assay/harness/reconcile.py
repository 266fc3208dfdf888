"""What was declared against what was delivered: every check × subject ends in exactly one outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from assay.harness.declared import Selection, checks
from assay.harness.judged import judged, left_out
from assay.harness.store.read import Stored
from assay.model.checks import Check
from assay.model.outcome import Outcome

Subjects = Mapping[str, str]
"""Ids of subjects, each with the node that it is or belongs to ("" for racks and fabrics)."""


@dataclass(frozen=True)
class Due:
    """What a selection must deliver: its checks, and its subjects by kind."""

    checks: tuple[Check, ...]
    subjects: Mapping[str, Subjects]

    @classmethod
    def of(cls, selection: Selection, phases: Collection[str]) -> Due:
        """Return what is due of a selection in these phases (none: in all)."""
        found = tuple(checks(selection.fleet, phases))
        kinds: set[str] = {check.subject for check in found}
        subjects = {kind: {str(one): node for one, node in selection.subjects(kind)} for kind in kinds}
        return cls(found, subjects)

    def __len__(self) -> int:
        return sum(len(self.subjects[check.subject]) for check in self.checks)


@dataclass(frozen=True)
class Differences:
    """Where the delivered are not the declared: ids of subjects by that of the check. Of the undeclared, also why."""

    missing: Mapping[str, Collection[str]]
    undeclared: Mapping[str, tuple[Collection[str], str]]

    def __bool__(self) -> bool:
        return bool(self.missing or self.undeclared)


def differences(due: Due, stored: Stored) -> Differences:
    """Compare what is due with what a file holds. What the user left out is not missed."""
    delivered, spared = judged(stored), left_out(stored)
    missing: dict[str, Collection[str]] = {}
    undeclared: dict[str, tuple[Collection[str], str]] = {}
    for check in due.checks:
        found = delivered.pop(check.id, set())
        subjects = due.subjects[check.subject]
        if absent := [one for one in subjects if one not in found and one not in spared.get(check.id, ())]:
            missing[check.id] = absent
        if others := found - subjects.keys():
            undeclared[check.id] = (others, "for this subject")
    undeclared |= {check: (found, "by any CheckCatalog") for check, found in delivered.items()}
    return Differences(missing, undeclared)


def mended(due: Due, found: Differences, stored: Stored, why: str) -> Iterator[Outcome]:
    """Yield an error for each difference. `why` says what became of what was not delivered."""
    for check, (subjects, where) in found.undeclared.items():
        for outcome in stored.outcomes(checks=[check], subjects=subjects):
            yield _wrong(outcome, f"is not declared {where}; declare it in specs/checks")
    for declared in due.checks:
        nodes = due.subjects[declared.subject]
        for subject in found.missing.get(declared.id, ()):
            yield _missing(declared, subject, nodes[subject], why)


def _wrong(outcome: Outcome, what: str) -> Outcome:
    said = f" (it said {outcome.verdict}{': ' if outcome.reason else ''}{outcome.reason})"
    return replace(outcome, verdict="error", reason=f"the check {what}{said}")


def _missing(check: Check, subject: str, node: str, why: str) -> Outcome:
    return Outcome(
        check=check.id,
        subject=subject,
        node=node,
        verdict="error",
        reason=why,
        fault=check.fault,
        phases=tuple(check.phases),
        active=check.active,
        observed=check.observed,
    )
