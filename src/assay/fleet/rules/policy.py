"""Lifecycle policies that name what is not there, or hold states that no node ever reaches.

That edges lead to states, that ways out are edges and that no state is a trap is the policy's own schema.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import nearest
from assay.fleet.rules.suites import declared
from assay.model.checks import CheckCatalog
from assay.model.faults import FaultCatalog
from assay.model.policy import LifecyclePolicy


@rule("ASY0070", "a state that no node ever reaches", why="What the policy promises there would never happen.")
def unreachable_state(draft: Draft) -> Iterator[Finding]:
    """Find states to which no edges lead from where nodes begin."""
    for policy in draft.of(LifecyclePolicy).values():
        reached = _reached(policy, {next(iter(policy.states)), *_starts(draft)})
        for state in policy.states:
            if state not in reached:
                place = draft.at(f"LifecyclePolicy/{policy.name}", "states", state)
                yield Finding(place, f"no edges lead to {state}", "draw an edge to it, or remove it")


@rule(
    "ASY0071",
    "a state that requires checks that do not exist",
    why="Nothing would be proved before it is left.",
    needs=(CheckCatalog,),
)
def empty_requirement(draft: Draft) -> Iterator[Finding]:
    """Find states that require or watch a phase for which no check is declared."""
    checks = [check for _, check in declared(draft)]
    for policy in draft.of(LifecyclePolicy).values():
        for name, state in policy.states.items():
            wanted = [(phase, False, "watch") for phase in state.watch]
            wanted += [(need.phase, need.active, "requires") for need in state.requires]
            for phase, active, entry in wanted:
                if not any(phase in check.phases and (check.active or not active) for check in checks):
                    kind = "active check" if active else "check"
                    place = draft.at(f"LifecyclePolicy/{policy.name}", "states", name, entry)
                    yield Finding(place, f"{name}: no {kind} has the phase {phase}", "declare one in specs/checks")


@rule("ASY0072", "a rule for an unknown fault class", why="The rule would never match.", needs=(FaultCatalog,))
def unknown_class(draft: Draft) -> Iterator[Finding]:
    """Find fault rules whose classes no catalogue holds. A class may be one XID: `gpu.xid.79`."""
    catalogs = draft.of(FaultCatalog).values()
    known = {name for catalog in catalogs for name in catalog.classes}
    for policy in draft.of(LifecyclePolicy).values():
        for title, answer in policy.faults.items():
            for name in answer.classes:
                if not any(catalog.class_of(name) for catalog in catalogs):
                    place = draft.at(f"LifecyclePolicy/{policy.name}", "faults", title, "classes")
                    yield Finding(place, f"{title}: no FaultCatalog holds the class {name}", nearest(name, known))


@rule(
    "ASY0073", "a node that starts in no state", why="Its first step would lead from nowhere.", needs=(LifecyclePolicy,)
)
def unknown_start(draft: Draft) -> Iterator[Finding]:
    """Find nodes whose `lifecycle_start` is no state of any policy."""
    states = {state for policy in draft.of(LifecyclePolicy).values() for state in policy.states}
    for host in draft.hosts if states else ():
        if host.read and host.read.lifecycle_start not in states:
            start = host.read.lifecycle_start
            said = f"{host.name}: no LifecyclePolicy has the state {start}"
            yield Finding(host.place("lifecycle_start"), said, nearest(start, states))


@rule("ASY0074", "two lifecycle policies", why="A node obeys one policy, and nothing says which.")
def several_policies(draft: Draft) -> Iterator[Finding]:
    """Find more than one policy."""
    policies = list(draft.of(LifecyclePolicy))
    for name in policies[1:]:
        place = draft.at(f"LifecyclePolicy/{name}", "name")
        yield Finding(place, f"{name} stands beside {policies[0]}", "keep one of the two")


def _starts(draft: Draft) -> set[str]:
    return {host.read.lifecycle_start for host in draft.hosts if host.read}


def _reached(policy: LifecyclePolicy, starts: set[str]) -> set[str]:
    reached: set[str] = set()
    waiting = [start for start in starts if start in policy.states] + list(policy.anywhere)
    while waiting:
        state = waiting.pop()
        if state not in reached:
            reached.add(state)
            waiting += policy.edges.get(state, [])
    return reached
