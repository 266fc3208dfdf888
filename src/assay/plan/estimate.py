"""How long a node is out on its way: as recorded, else as the policy says, else assumed, and marked as that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.model.policy import LifecyclePolicy, State
from assay.plan.assumptions import ACTIONS, PERSON, SUITES, Assumption
from assay.plan.facts import Facts
from assay.plan.routes import Route

Basis = Literal["recorded", "policy", "assumed"]


@dataclass(frozen=True, slots=True)
class Stage:
    """The stay in one state. `sources` say where the number comes from."""

    state: str
    hours: float
    basis: Basis
    sources: tuple[str, ...]


def stages(policy: LifecyclePolicy, facts: Facts, route: Route) -> tuple[Stage, ...]:
    """Return the stays of a node that leaves service on this way."""
    return tuple(_stage(policy, facts, name) for name in route.out)


def _stage(policy: LifecyclePolicy, facts: Facts, name: str) -> Stage:
    state, seen = policy.states[name], facts.stays.get(name)
    if seen and seen.hours >= state.soak_hours:
        return Stage(name, seen.hours, "recorded", (f"median of {seen.count} stays",))
    if state.soak_hours:
        return Stage(name, state.soak_hours, "policy", ("soak_hours",))
    return _of_parts(facts, name, state)


def _of_parts(facts: Facts, name: str, state: State) -> Stage:
    """Add up the actions on arrival, the suites that are required, and the person who certifies."""
    recorded = [(action, facts.actions[action]) for action in state.entry if action in facts.actions]
    assumed: list[tuple[str, Assumption]] = [
        (action, ACTIONS[action]) for action in state.entry if action not in facts.actions
    ]
    assumed += [("suites", SUITES)] if state.requires else []
    assumed += [("a person", PERSON)] if state.certified_to and not state.pass_to else []
    hours = sum(one.hours for _, one in recorded) + sum(one.hours for _, one in assumed)
    said = [f"{action}: median of {one.count}" for action, one in recorded]
    said += [_told(what, one) for what, one in assumed if one.hours]
    basis: Basis = "assumed" if any(one.hours for _, one in assumed) else "recorded" if recorded else "policy"
    return Stage(name, hours, basis, tuple(said))


def _told(what: str, one: Assumption) -> str:
    return f"{what} {one.hours:g} h: {one.source}"
