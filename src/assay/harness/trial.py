"""One check on one subject while it is judged: what it looked at, what it measured, what fell silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assay.harness.shelf import Document, Shelf
from assay.harness.silence import Silence
from assay.model.outcome import Measurement, Outcome, Verdict
from assay.model.subject import Subject


@dataclass(slots=True)
class Trial:
    """Collects what the outcome will say. `check`, `phases`, `fault` and `active` come from the function's marks."""

    check: str
    subject: Subject
    node: str
    shelf: Shelf
    phases: tuple[str, ...] = ()
    fault: str = ""
    active: bool = False
    measurements: list[Measurement] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    documents: dict[str, Document] = field(default_factory=dict)

    def look(self, name: str) -> Document:
        """Return the newest document of a node and remember that this verdict rests on it. Raises Silence."""
        if name not in self.documents:
            try:
                self.documents[name] = self.shelf.latest(name)
            except Silence as silence:
                raise self.silent(silence) from None
        return self.documents[name]

    def silent(self, silence: Silence) -> Silence:
        """Note a reading that gave no value: whatever the check makes of it, it cannot pass any more."""
        self.silences.append(silence)
        return silence

    def outcome(self, verdict: Verdict, reason: str, duration_s: float) -> Outcome:
        """Return the one outcome. It is dated by the oldest document that was looked at."""
        oldest = _oldest(self.documents)
        return Outcome(
            check=self.check,
            subject=str(self.subject),
            node=self.node,
            verdict=verdict,
            reason=reason,
            fault=self.fault,
            phases=self.phases,
            active=self.active,
            evidence=oldest.digest if oldest else "",
            evidence_at=oldest.at if oldest else "",
            duration_s=round(duration_s, 6),
            measurements=tuple(self.measurements),
        )


def _oldest(documents: Mapping[str, Document]) -> Document | None:
    if len(documents) == 1:  # nearly always
        return next(iter(documents.values()))
    return min(documents.values(), key=_collected, default=None)


def _collected(document: Document) -> datetime:
    return document.evidence.at
