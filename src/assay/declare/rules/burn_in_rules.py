"""Burn-ins that no node gets, or that do not fit the state that asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import FilePosition, RuleFinding, rule
from assay.declare.rules.dangling_names import suggest_name
from assay.model.specs.burn_in_spec import BurnIn
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.policy_sections import LifecycleState


class _NamedBurnIn(NamedTuple):
    """A burn-in that a state of a policy names, and where."""

    place: FilePosition
    state_name: str
    state: LifecycleState
    name: str


@rule(
    "ASY0310",
    "a state that names a burn-in that does not exist",
    why="No node leaves this state: the burn-in that it waits for never starts.",
    needs=(BurnIn,),
)
def unknown_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find names in `burn_in` of a state that are no BurnIn."""
    known = set(draft.specs_of_model(BurnIn))
    for one in _list_named(draft):
        if one.name not in known:
            message = f"{one.state_name}: there is no burn-in {one.name}"
            yield RuleFinding(one.place, message, suggest_name(one.name, known))


@rule(
    "ASY0311",
    "a burn-in that takes longer than its state may",
    why="Every node misses the deadline of the state, or the state promises a shorter stay than it keeps.",
)
def long_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Compare the hours of a burn-in with the soak time and the deadline of the state that names it."""
    burn_ins = draft.specs_of_model(BurnIn)
    for one in _list_named(draft):
        if (burn_in := burn_ins.get(one.name)) is None:
            continue
        soak, deadline = one.state.soak_hours, one.state.deadline
        if soak and burn_in.hours > soak:
            message = f"{one.state_name}: the phases of {one.name} take {burn_in.hours:g} h, and soak_hours is {soak:g}"
            yield RuleFinding(one.place, message, f"say soak_hours: {burn_in.hours:g}, or shorten phases")
        elif deadline and burn_in.longest_hours >= deadline.hours:
            takes = f"{burn_in.longest_hours:g} h, with the time that a drifting node is held"
            message = f"{one.state_name}: {one.name} takes {takes}, and the deadline is {deadline.hours:g} h"
            yield RuleFinding(one.place, message, "let the deadline be longer, or shorten the burn-in")


@rule(
    "ASY0312",
    "a burn-in for a node spec that does not exist",
    why="The nodes that are meant get another burn-in, or none.",
    needs=(NodeSpec,),
)
def unknown_spec_of_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find names in `node_specs` of a BurnIn that are no NodeSpec."""
    known = set(draft.specs_of_model(NodeSpec))
    for burn_in in draft.specs_of_model(BurnIn).values():
        for number, name in enumerate(burn_in.node_specs):
            if name not in known:
                place = draft.find_position(f"BurnIn/{burn_in.name}", "node_specs", number)
                yield RuleFinding(place, f"there is no node spec {name}", suggest_name(name, known))


@rule(
    "ASY0313",
    "a burn-in that never has its turn",
    why="An earlier burn-in of the same state is for every node that this one is for.",
)
def hidden_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find burn-ins of a state that stand after one for the same nodes."""
    burn_ins = draft.specs_of_model(BurnIn)
    earlier: dict[str, list[BurnIn]] = {}
    for one in _list_named(draft):
        if (burn_in := burn_ins.get(one.name)) is None:
            continue
        for other in earlier.setdefault(one.state_name, []):
            if not other.node_specs or (burn_in.node_specs and set(burn_in.node_specs) <= set(other.node_specs)):
                message = f"{one.state_name}: {other.name}, which stands before {one.name}, is for the same nodes"
                yield RuleFinding(one.place, message, f"put {one.name} first, or say in node_specs what it is for")
                break
        earlier[one.state_name].append(burn_in)


def _list_named(draft: RepositoryDraft) -> Iterator[_NamedBurnIn]:
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            for number, burn_in in enumerate(state.burn_in):
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name, "burn_in", number)
                yield _NamedBurnIn(place, name, state, burn_in)


@rule(
    "ASY0314",
    "a burn-in that nothing starts",
    why="The state waits for a burn-in that never begins, or starts one that it does not name.",
)
def unstarted_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find states with `burn_in` whose entry actions do not start it, and the other way round."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            if bool(state.burn_in) == ("burn-in" in state.entry):
                continue
            field = "burn_in" if state.burn_in else "entry"
            place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name, field)
            if state.burn_in:
                yield RuleFinding(
                    place, f"{name} names a burn-in, and its entry starts none", "add burn-in to its entry"
                )
            else:
                yield RuleFinding(place, f"{name} starts a burn-in, and names none", "name one: burn_in: [NAME]")
