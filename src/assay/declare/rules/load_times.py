"""Loads whose parts take longer, even at the least, than the time that they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import RuleFinding, rule
from assay.model.specs.burn_in_spec import BurnIn, BurnInPhase
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.load_parts import LoadPart, find_least_seconds
from assay.model.specs.schedules import IdleVerificationSpec, Schedules


@rule(
    "ASY0207",
    "a verification whose parts do not fit into a visit",
    why="A visit ends after within_minutes in any case, so its last parts never end, and their checks never pass.",
)
def overfull_visit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Add up the parts of a visit; with a budget, a visit may have only one part that takes longer than the budget."""
    for document in draft.specs_of_model(Schedules).values():
        for name, schedule in document.schedules.items():
            how = schedule.verification
            if how is None or (takes_s := _find_longest_visit_s(how)) <= how.within_minutes * 60:
                continue
            path = ("schedules", name, "verification", "within_minutes")
            place = draft.find_position(f"Schedules/{document.name}", *path)
            what = "its longest part takes" if how.budget_minutes else "its parts take"
            message = f"{name}: {what} {takes_s / 60:g} min, and within_minutes is {how.within_minutes:g}"
            yield RuleFinding(place, message, _advise(how))


def _find_longest_visit_s(how: IdleVerificationSpec) -> float:
    times = how.seconds_by_part.values()
    return sum(times) if how.budget_minutes is None else max(times)


def _advise(how: IdleVerificationSpec) -> str:
    if how.budget_minutes is None:
        return "let parts take turns (budget_minutes), give them fewer seconds, or let the visit be longer"
    return "give the part fewer seconds, leave it out, or let the visit be longer"


@rule(
    "ASY0315",
    "a phase of a burn-in that is too short for its parts",
    why="A part that never ran to its end makes the burn-in incomplete, so no node leaves its state.",
)
def overfull_phase(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Compare one run of each part of a phase, one after the other, with the time in which the phase loads the node."""
    for burn_in in draft.specs_of_model(BurnIn).values():
        for number, phase in enumerate(burn_in.phases):
            unit_s = phase.unit_seconds or burn_in.unit_seconds
            takes_s = max(_add_up(phase.parts, unit_s), _add_up(phase.beside, unit_s))
            if takes_s > (loads_s := _find_loaded_s(phase)):
                place = draft.find_position(f"BurnIn/{burn_in.name}", "phases", number, "hours")
                takes, loads = f"{takes_s / 60:.3g} min", f"{loads_s / 60:.3g} min"
                message = f"{phase.name}: one run of each part takes {takes}, and the phase loads the node for {loads}"
                yield RuleFinding(place, message, "give the phase more hours, fewer parts or shorter units")


def _find_loaded_s(phase: BurnInPhase) -> float:
    share = phase.cycles.on_minutes * 60 / phase.cycles.period_s if phase.cycles else 1.0
    return phase.hours * 3600 * share


@rule(
    "ASY0316",
    "a state whose load takes longer than its deadline",
    why="Every node misses the deadline of the state, because its load has not ended by then.",
)
def overdue_load(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Add up the parts of a required load that run for as long as they like."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            if state.deadline is None:
                continue
            for number, one in enumerate(state.requires):
                takes_h = _add_up(one.parts, 0) / 3600 if one.active else 0
                if takes_h >= state.deadline.hours:
                    path = ("states", name, "requires", number, "parts")
                    message = f"{name}: its load takes {takes_h:g} h, and the deadline is {state.deadline.hours:g} h"
                    place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path)
                    yield RuleFinding(place, message, "let the deadline be longer, or name parts that take less time")


def _add_up(parts: Sequence[LoadPart], seconds: float) -> float:
    return sum(find_least_seconds(part, seconds) for part in parts)
