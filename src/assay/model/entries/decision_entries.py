"""Entries about what was decided for a node, and about pending decisions that were taken back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from assay.model.decision import Decision, DecisionCause, DecisionTiming
from assay.model.entries.entry_content import EntryContent, stored_as, stored_list


def _parse_causes(causes: Iterable[dict[str, Any]]) -> tuple[DecisionCause, ...]:
    return tuple([DecisionCause(cause["kind"], cause["id"], cause["text"]) for cause in causes])


def _encode_causes(causes: Iterable[DecisionCause]) -> list[dict[str, str]]:
    return [cause.as_json() for cause in causes]


@dataclass(frozen=True, slots=True)
class DecisionEntry(EntryContent):
    """A decision. `decision` is its id, `rule` is `file:line name`; see `model.decision.Decision` for the rest."""

    kind = "decision"
    decision: str
    from_state: str = field(metadata=stored_as("from"))
    to_state: str = field(metadata=stored_as("to"))
    timing: DecisionTiming
    rule: str
    remedy: str = field(metadata=stored_as(missing=""))
    causes: tuple[DecisionCause, ...] = field(
        metadata=stored_as("because", missing=(), parse=_parse_causes, encode=_encode_causes)
    )
    blockers: tuple[str, ...] = field(metadata=stored_list(missing=()))

    @classmethod
    def from_decision(cls, decision: Decision) -> DecisionEntry:
        """Return the content of the entry that records a decision."""
        return cls(
            decision=decision.id,
            from_state=decision.from_state,
            to_state=decision.to_state,
            timing=decision.timing,
            rule=decision.rule,
            remedy=decision.remedy,
            causes=decision.causes,
            blockers=decision.blockers,
        )


@dataclass(frozen=True, slots=True)
class DecisionWithdrawnEntry(EntryContent):
    """A pending decision was taken back. `by` is the id of the decision that did it, "" where a person did."""

    kind = "decision.withdrawn"
    decision: str
    reason: str = field(metadata=stored_as(missing=""))
    by: str = field(default="", metadata=stored_as(omit_empty=True))
    who: str = field(default="", metadata=stored_as(omit_empty=True))
