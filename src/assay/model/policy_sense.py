"""What no policy may say: names of no state, ways that no edge draws, states and ladders without an end, silence."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from assay.model.errors import Misfit

if TYPE_CHECKING:
    from assay.model.policy import LifecyclePolicy

Path = tuple[str | int, ...]


def misfits(policy: LifecyclePolicy) -> list[Misfit]:
    """Return what is wrong. Where names are wrong, nothing that rests on them is said."""
    strangers = list(_strangers(policy))
    return strangers or [
        *_undrawn(policy),
        *_stuck(policy),
        *_endless(policy),
        *_unanswered(policy),
        *_hasty(policy),
        *_toothless(policy),
    ]


def way_path(state: str, field: str) -> Path:
    """Return the path of a way out, as `State.ways_out` names it."""
    name, _, number = field.partition(".")
    nested: Path = (int(number), "to") if number else ("to",) if name == "deadline" else ()
    return ("states", state, name, *nested)


def _strangers(policy: LifecyclePolicy) -> Iterator[Misfit]:
    for path, name in _names(policy):
        if name not in policy.states:
            near = get_close_matches(name, policy.states, n=1)
            fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(policy.states)}"
            yield Misfit("ASY0088", path, f"{'.'.join(map(str, path))}: {name!r} is no state", fix)


def _names(policy: LifecyclePolicy) -> Iterator[tuple[Path, str]]:
    """Yield every name of a state outside of `states`, with its path."""
    for origin, targets in policy.edges.items():
        yield ("edges", origin), origin
        yield from ((("edges", origin, number), name) for number, name in enumerate(targets))
    yield from ((("anywhere", number), name) for number, name in enumerate(policy.anywhere))
    for state, content in policy.states.items():
        yield from ((way_path(state, field), target) for field, target in content.ways_out())
    yield from ((("ladder", "rungs", remedy, "to"), rung.to) for remedy, rung in policy.ladder.rungs.items())
    for title, rule in policy.faults.items():
        yield from ((("faults", title, "states", number), name) for number, name in enumerate(rule.states))
        if rule.to:
            yield ("faults", title, "to"), rule.to


def _undrawn(policy: LifecyclePolicy) -> Iterator[Misfit]:
    for name, state in policy.states.items():
        for field, target in state.ways_out():
            if not policy.may_go(name, target):
                said = f"states.{name}.{field} leads to {target}, but edges draw no {name} → {target}"
                yield Misfit("ASY0089", way_path(name, field), said, f"add {target} to edges.{name}, or lead elsewhere")


def _stuck(policy: LifecyclePolicy) -> Iterator[Misfit]:
    home = {name for name, state in policy.states.items() if state.in_service}
    if not home:
        yield Misfit("ASY0075", ("states",), "no state is in_service", "say in_service: true where customers are")
        return
    while grown := {name for name, targets in policy.edges.items() if home & set(targets)} - home:
        home |= grown
    for name, state in policy.states.items():
        if name not in home and not state.final:
            said = f"no way back into service from: {name}"
            yield Misfit("ASY0075", ("states", name), said, "draw an edge out of it, or say final: true")


def _endless(policy: LifecyclePolicy) -> Iterator[Misfit]:
    rungs = policy.ladder.rungs
    circles: set[str] = set()
    for remedy, rung in rungs.items():
        path = ("ladder", "rungs", remedy, "then")
        if rung.then is not None and rung.then not in rungs:
            said = f"ladder.rungs.{remedy}.then is {rung.then}, which is no rung"
            yield Misfit("ASY0076", path, said, f"use one of {', '.join(rungs)}, or add the rung {rung.then}")
        circle = _circle(policy, remedy)
        if circle and not circles & set(circle):
            circles |= set(circle)
            said = f"the ladder climbs in a circle: {' → '.join([*circle, circle[0]])}"
            yield Misfit("ASY0076", path, said, "let one of them be the last: take its `then` out")


def _circle(policy: LifecyclePolicy, remedy: str) -> list[str]:
    """Return the rungs of a circle that leads from a remedy back to it."""
    rungs = {str(name): rung for name, rung in policy.ladder.rungs.items()}
    climbed: list[str] = []
    here: str | None = remedy
    while here in rungs and here not in climbed:
        climbed.append(here)
        here = rungs[here].then
    return climbed if here == remedy else []


def _unanswered(policy: LifecyclePolicy) -> Iterator[Misfit]:
    if not policy.faults:
        yield Misfit("ASY0077", ("faults",), "no rule answers any fault", "end with a rule that only says its timing")
        return
    title, last = list(policy.faults.items())[-1]
    if not last.matches_everything:
        said = "the last of the faults' rules must match everything, so that none goes unanswered"
        fix = f"add a rule below {title} that says its timing and nothing else: `everything-else: {{timing: record}}`"
        yield Misfit("ASY0077", ("faults", title), said, fix)


def _hasty(policy: LifecyclePolicy) -> Iterator[Misfit]:
    for name, state in policy.states.items():
        if state.deadline and state.deadline.hours <= state.soak_hours:
            late, soak = state.deadline.hours, state.soak_hours
            said = f"states.{name}.deadline is {late:g} h, and nothing leaves before {soak:g} h"
            fix = "let the deadline be longer than soak_hours"
            yield Misfit("ASY0190", ("states", name, "deadline", "hours"), said, fix)


def _toothless(policy: LifecyclePolicy) -> Iterator[Misfit]:
    for name, rule in policy.racks.items():
        if rule.more_than >= rule.of:
            said = f"racks.{name} asks for more than {rule.more_than} of {rule.of} nodes out, which never happens"
            yield Misfit("ASY0191", ("racks", name, "more_than"), said, f"use a number below {rule.of}")
    at_once = policy.limits.effects_at_once
    if at_once.rack > at_once.pool:
        said = f"{at_once.rack} effects may be under way in a rack, and only {at_once.pool} in its whole pool"
        path = ("limits", "effects_at_once", "rack")
        yield Misfit("ASY0191", path, said, f"use at most {at_once.pool}, or let the pool have more")
