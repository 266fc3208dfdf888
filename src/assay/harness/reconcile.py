"""What was declared against what was delivered: every check × subject ends in exactly one outcome."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assay.model.checks import Check
from assay.model.outcome import Outcome
from assay.model.subject import Subject

Due = tuple[Check, Subject, str]


def reconcile(due: Iterable[Due], delivered: Iterable[Outcome], ended: str) -> tuple[list[Outcome], list[Outcome]]:
    """Return (every outcome, those among them that were missing).

    What is due and was not delivered is an error; so is what nobody declared, and what was delivered twice.
    `ended` says how pytest ended, for the reasons.
    """
    expected = {(check.id, str(subject)): (check, subject, node) for check, subject, node in due}
    found: dict[tuple[str, str], Outcome] = {}
    for outcome in delivered:
        key = (outcome.check, outcome.subject)
        twice = key in found
        found[key] = _wrong(outcome, "was judged twice in one run") if twice else outcome
    known = {check for check, _ in expected}
    outcomes = [
        outcome if key in expected else _wrong(outcome, _undeclared(outcome, known)) for key, outcome in found.items()
    ]
    missing = [_missing(*expected[key], ended) for key in expected if key not in found]
    return [*outcomes, *missing], missing


def _undeclared(outcome: Outcome, known: set[str]) -> str:
    what = f"for {outcome.subject}" if outcome.check in known else "by any CheckCatalog"
    return f"is not declared {what}; declare it in specs/checks"


def _wrong(outcome: Outcome, what: str) -> Outcome:
    said = f" (it said {outcome.verdict}{': ' if outcome.reason else ''}{outcome.reason})"
    return replace(outcome, verdict="error", reason=f"the check {what}{said}")


def _missing(check: Check, subject: Subject, node: str, ended: str) -> Outcome:
    return Outcome(
        check=check.id,
        subject=str(subject),
        node=node,
        verdict="error",
        reason=f"no outcome was delivered: {ended}",
        fault=check.fault,
        phases=tuple(check.phases),
        active=check.active,
    )
