"""What the policy will do at the next look about nodes that no longer are what their spec says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from assay.lifecycle.answers import Answer, answer
from assay.model.policy import State
from assay.model.profile import ManagementProfile
from assay.plan.declared import Declared
from assay.plan.stale import Stale

What = Literal["moves", "noted", "tracked", "fails", "stays", "ahead", "unseen"]


@dataclass(frozen=True, slots=True)
class Follows:
    """What follows for nodes in one state. `fault` is the class as which the difference is seen, "" for none.

    `what`: the policy `moves` them or only has it `noted`; `tracked` by a profile that is not acted on; the state's
    requirements fail and lead elsewhere (`fails`) or keep it (`stays`); they take the change when they come to it
    (`ahead`); nothing looks (`unseen`). `to` is the state that they go to.
    """

    nodes: tuple[str, ...]
    state: str
    what: What
    fault: str = ""
    checks: tuple[str, ...] = ()
    answer: Answer | None = None
    to: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Drifting:
    """Nodes that differ from their spec in the same way, in the same state. `brought`: they were zapped already."""

    state: str
    profile: str
    stale: tuple[Stale, ...]
    brought: bool


def follows(after: Declared, drifting: Iterable[tuple[Drifting, Sequence[str]]]) -> tuple[Follows, ...]:
    """Return what follows for groups of nodes; groups for which the same follows are told as one."""
    merged: dict[Follows, list[str]] = defaultdict(list)
    for drift, nodes in drifting:
        for one in _of(after, drift):
            merged[one] += nodes
    return tuple(replace(one, nodes=tuple(nodes)) for one, nodes in merged.items())


def _of(after: Declared, drift: Drifting) -> Iterator[Follows]:
    state, failing = after.policy.states.get(drift.state), [one for one in drift.stale if one.certain]
    if state is None:
        return
    watched = [one for one in failing if set(state.watch) & set(one.phases) and one.fault]
    required = [one for one in failing if {want.phase for want in state.requires} & set(one.phases)]
    if watched:
        yield from _watched(after, drift, watched)
    elif "zap" in state.entry and not drift.brought:
        yield Follows((), drift.state, "ahead")
    elif required:
        yield _required(after, drift.state, state, required)
    else:
        yield Follows((), drift.state, "unseen" if state.in_service or state.final else "ahead")


def _watched(after: Declared, drift: Drifting, watched: list[Stale]) -> Iterator[Follows]:
    profile = after.fleet.profiles[drift.profile]
    for fault in dict.fromkeys(one.fault for one in watched):
        checks = tuple(one.check for one in watched if one.fault == fault)
        for said in dict.fromkeys(
            answer(after.policy, after.catalog, drift.state, fault, use) for use in (False, True)
        ):
            rule = f"{after.policy_line(f'faults.{said.rule}')} {said.rule}"
            yield Follows((), drift.state, _what(profile, said), fault, checks, said, said.to, rule)


def _what(profile: ManagementProfile, said: Answer) -> What:
    if not profile.acts_on_faults:
        return "tracked"
    return "moves" if said.moves else "noted"


def _required(after: Declared, name: str, state: State, required: list[Stale]) -> Follows:
    checks = tuple(one.check for one in required)
    path = f"states.{name}.fail_to" if state.fail_to else f"states.{name}.requires"
    what: What = "fails" if state.fail_to else "stays"
    return Follows((), name, what, required[0].fault, checks, None, state.fail_to or "", after.policy_line(path))
