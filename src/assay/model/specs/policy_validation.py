"""What no policy may say: names of no state, ways that no edge draws, states and ladders without an end, silence."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from assay.model.errors import FieldConflict

if TYPE_CHECKING:
    from assay.model.specs.lifecycle_policy import LifecyclePolicy

EntryPath = tuple[str | int, ...]


def find_policy_conflicts(policy: LifecyclePolicy) -> list[FieldConflict]:
    """Return what is wrong. Where names are wrong, nothing that rests on them is said."""
    strangers = list(_unknown_states(policy))
    return strangers or [
        *_missing_edges(policy),
        *_dead_ends(policy),
        *_ladder_circles(policy),
        *_unanswered_faults(policy),
        *_early_deadlines(policy),
        *_unreachable_bounds(policy),
    ]


def exit_path(state: str, field: str) -> EntryPath:
    """Return the path of a way out, as `State.ways_out` names it."""
    name, _, number = field.partition(".")
    nested: EntryPath = (int(number), "to") if number else ("to",) if name == "deadline" else ()
    return ("states", state, name, *nested)


def _unknown_states(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for path, name in _state_references(policy):
        if name not in policy.states:
            near = get_close_matches(name, policy.states, n=1)
            fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(policy.states)}"
            yield FieldConflict("ASY0088", path, f"{'.'.join(map(str, path))}: {name!r} is no state", fix)


def _state_references(policy: LifecyclePolicy) -> Iterator[tuple[EntryPath, str]]:
    """Yield every name of a state outside of `states`, with its path."""
    for origin, targets in policy.edges.items():
        yield ("edges", origin), origin
        yield from ((("edges", origin, number), name) for number, name in enumerate(targets))
    yield from ((("anywhere", number), name) for number, name in enumerate(policy.anywhere))
    for state, content in policy.states.items():
        yield from ((exit_path(state, field), target) for field, target in content.list_exits())
    yield from ((("ladder", "rungs", remedy, "to"), rung.to) for remedy, rung in policy.ladder.rungs.items())
    for title, rule in policy.faults.items():
        yield from ((("faults", title, "states", number), name) for number, name in enumerate(rule.states))
        if rule.to:
            yield ("faults", title, "to"), rule.to


def _missing_edges(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, state in policy.states.items():
        for field, target in state.list_exits():
            if not policy.has_edge(name, target):
                said = f"states.{name}.{field} leads to {target}, but edges draw no {name} → {target}"
                yield FieldConflict(
                    "ASY0089", exit_path(name, field), said, f"add {target} to edges.{name}, or lead elsewhere"
                )


def _dead_ends(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    home = {name for name, state in policy.states.items() if state.in_service}
    if not home:
        yield FieldConflict(
            "ASY0075", ("states",), "no state is in_service", "say in_service: true where customers are"
        )
        return
    while grown := {name for name, targets in policy.edges.items() if home & set(targets)} - home:
        home |= grown
    for name, state in policy.states.items():
        if name not in home and not state.final:
            said = f"no way back into service from: {name}"
            yield FieldConflict("ASY0075", ("states", name), said, "draw an edge out of it, or say final: true")


def _ladder_circles(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    rungs = policy.ladder.rungs
    circles: set[str] = set()
    for remedy, rung in rungs.items():
        path = ("ladder", "rungs", remedy, "then")
        if rung.then is not None and rung.then not in rungs:
            said = f"ladder.rungs.{remedy}.then is {rung.then}, which is no rung"
            yield FieldConflict("ASY0076", path, said, f"use one of {', '.join(rungs)}, or add the rung {rung.then}")
        circle = _find_ladder_circle(policy, remedy)
        if circle and not circles & set(circle):
            circles |= set(circle)
            said = f"the ladder climbs in a circle: {' → '.join([*circle, circle[0]])}"
            yield FieldConflict("ASY0076", path, said, "let one of them be the last: take its `then` out")


def _find_ladder_circle(policy: LifecyclePolicy, remedy: str) -> list[str]:
    """Return the rungs of a circle that leads from a remedy back to it."""
    rungs = {str(name): rung for name, rung in policy.ladder.rungs.items()}
    climbed: list[str] = []
    here: str | None = remedy
    while here in rungs and here not in climbed:
        climbed.append(here)
        here = rungs[here].then
    return climbed if here == remedy else []


def _unanswered_faults(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    if not policy.faults:
        yield FieldConflict(
            "ASY0077", ("faults",), "no rule answers any fault", "end with a rule that only says its timing"
        )
        return
    title, last = list(policy.faults.items())[-1]
    if not last.matches_everything:
        said = "the last of the faults' rules must match everything, so that none goes unanswered"
        fix = f"add a rule below {title} that says its timing and nothing else: `everything-else: {{timing: record}}`"
        yield FieldConflict("ASY0077", ("faults", title), said, fix)


def _early_deadlines(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, state in policy.states.items():
        if state.deadline and state.deadline.hours <= state.soak_hours:
            late, soak = state.deadline.hours, state.soak_hours
            said = f"states.{name}.deadline is {late:g} h, and nothing leaves before {soak:g} h"
            fix = "let the deadline be longer than soak_hours"
            yield FieldConflict("ASY0190", ("states", name, "deadline", "hours"), said, fix)


def _unreachable_bounds(policy: LifecyclePolicy) -> Iterator[FieldConflict]:
    for name, rule in policy.racks.items():
        if rule.more_than >= rule.of:
            said = f"racks.{name} asks for more than {rule.more_than} of {rule.of} nodes out, which never happens"
            yield FieldConflict("ASY0191", ("racks", name, "more_than"), said, f"use a number below {rule.of}")
    at_once = policy.limits.effects_at_once
    if at_once.rack > at_once.pool:
        said = f"{at_once.rack} effects may be under way in a rack, and only {at_once.pool} in its whole pool"
        path = ("limits", "effects_at_once", "rack")
        yield FieldConflict("ASY0191", path, said, f"use at most {at_once.pool}, or let the pool have more")
