"""Changes between two runs, those that are alike together: of one kind, for one reason."""

from __future__ import annotations

from dataclasses import dataclass

from assay.harness.results.alike import shape
from assay.harness.results.compare import KINDS, Change, Comparison, Kind
from assay.harness.results.lines import WIDTH, short, sign, visible, where
from assay.model.spans import counted

TITLES: dict[Kind, str] = {
    "new_failure": "newly failing",
    "newly_unknown": "not known any more",
    "unexcused": "not excused any more",
    "unseen": "wrong where the older run did not look",
    "still_failing": "still failing",
    "still_unknown": "still not known",
    "vanished": "not judged any more",
    "fixed": "fixed",
    "judged_again": "passing, and not known before",
    "appeared": "judged for the first time",
}
UNKNOWN = ("error", "skip")
"""Of these, one cause is often many checks'."""
BEFORE = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "was skipped"}


@dataclass
class Gathered:
    """Changes of one kind for one reason; `example` is the first of them."""

    example: Change
    outcomes: int
    places: dict[str, None]
    checks: set[str]

    @property
    def kind(self) -> Kind:
        """What became of them."""
        return self.example.kind

    @property
    def decides(self) -> bool:
        """Whether they count."""
        return self.example.decides

    @property
    def said(self) -> str:
        """Where and why, in words."""
        one = self.example
        if self.outcomes == 1:
            return f"{one.subject}: {_why(one)}"
        return f"{self.outcomes} outcomes on {where(list(self.places))}, first {one.subject}: {_why(one)}"

    @property
    def line(self) -> str:
        """One line for people."""
        one = self.example
        word = sign(one.now or "gone", one.known, observed=one.observed)
        what = short(one.check) if len(self.checks) == 1 else counted(len(self.checks), "check")
        if self.outcomes == 1:
            return f"{word:<5} {one.subject:<{WIDTH}} {what}  {_why(one)}"
        first = f" ({one.subject})" if len(self.places) > 1 else ""
        many = f"{what}, {self.outcomes} outcomes" if self.outcomes > len(self.places) else what
        return f"{word:<5} {where(list(self.places)):<{WIDTH}} {many}  {_why(one)}{first}"


def gathered(comparison: Comparison) -> list[Gathered]:
    """Return what changed, alike changes together; what is widest spread first within each kind."""
    together = []
    for kind in KINDS:
        of_kind = _gather(comparison, kind)
        together += sorted(of_kind, key=lambda one: (not one.decides, -len(one.places), -one.outcomes))
    return together


def _gather(comparison: Comparison, kind: Kind) -> list[Gathered]:
    together: dict[tuple[object, ...], Gathered] = {}
    for one in comparison.changes(kind):
        check = "" if one.now in UNKNOWN or (one.now == "pass" and one.was in UNKNOWN) else one.check
        key = (check, one.now, shape(one.reason or one.was_reason, one.node), one.known, one.observed, one.decides)
        known = together.get(key)
        if known is None:
            known = together[key] = Gathered(one, 0, {}, set())
        known.outcomes += 1
        known.places[one.node or one.subject] = None
        known.checks.add(one.check)
    return list(together.values())


def _why(one: Change) -> str:
    if one.kind in ("fixed", "judged_again", "vanished"):
        return f"{BEFORE[one.was]} before{f': {visible(one.was_reason)}' if one.was_reason else ''}" if one.was else ""
    before = f" ({BEFORE[one.was]} before)" if one.was and one.kind == "newly_unknown" else ""
    return f"{visible(one.reason)}{before}{f'  [{one.known}]' if one.known else ''}"
