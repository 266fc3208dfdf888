"""When nodes were out of service, and how long such an absence takes by what earlier ones took. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.decide.state.node_state import NodeState, TransitionRecord
from assay.model.timestamps import parse_time

MIN_RETURNS = 5
"""An estimate needs at least so many nodes that came back."""


@dataclass(frozen=True, slots=True)
class ServiceAbsence:
    """One time out of service, with the transitions out of service and on. `ended_at` is None while it lasts."""

    began_at: datetime
    transitions: tuple[TransitionRecord, ...]
    ended_at: datetime | None

    @property
    def first_state(self) -> str:
        """The state that the node left service for."""
        return self.transitions[0].target

    @property
    def states(self) -> frozenset[str]:
        """Every state that the node went through."""
        return frozenset(move.target for move in self.transitions)


@dataclass(frozen=True, slots=True)
class AbsenceEstimate:
    """How long absences took: half of `cases` at most `half`, nine of ten at most `most`.

    Both are None if too few have come back to say so.
    """

    cases: int
    half: timedelta | None
    most: timedelta | None


def list_absences(node_state: NodeState, in_service: Collection[str]) -> list[ServiceAbsence]:
    """Return when a node was out of service, oldest first. A time before it first served does not count."""
    absences: list[ServiceAbsence] = []
    moves: list[TransitionRecord] = []
    for move in node_state.transitions:
        if moves and move.target in in_service:
            absences.append(ServiceAbsence(parse_time(moves[0].at), tuple(moves), parse_time(move.at)))
            moves = []
        elif moves or (move.origin in in_service and move.target not in in_service):
            moves.append(move)
    if moves:
        absences.append(ServiceAbsence(parse_time(moves[0].at), tuple(moves), None))
    return absences


def estimate_absence(
    others: Iterable[ServiceAbsence], first_state: str, present_state: str, gone: Collection[str], now: datetime
) -> AbsenceEstimate | None:
    """Return how long absences took that began in `first_state` and came to `present_state`.

    Absences that still last count until `now` (the estimator of Kaplan and Meier), so that slow repairs are not
    forgotten. Nodes in a state of `gone` never come back. None if fewer than MIN_RETURNS have come back.
    """
    alike = [absence for absence in others if absence.first_state == first_state and present_state in absence.states]
    spans = sorted((_measure(absence, gone, now), absence.ended_at is None) for absence in alike)
    if sum(not lasts for _, lasts in spans) < MIN_RETURNS:
        return None
    return AbsenceEstimate(len(spans), _find_quantile(spans, 0.5), _find_quantile(spans, 0.9))


def _measure(absence: ServiceAbsence, gone: Collection[str], now: datetime) -> timedelta:
    if absence.ended_at is None and absence.transitions[-1].target in gone:
        return timedelta.max
    return (absence.ended_at or now) - absence.began_at


def _find_quantile(spans: list[tuple[timedelta, bool]], share: float) -> timedelta | None:
    """Return the time in which this share came back. `spans`: each with whether it still lasts, the shortest first."""
    still_out = 1.0
    for number, (span, lasts) in enumerate(spans):
        if not lasts:
            still_out *= 1 - 1 / (len(spans) - number)
        if still_out <= 1 - share + 1e-9:
            return span
    return None
