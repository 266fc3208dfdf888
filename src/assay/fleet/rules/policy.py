"""Lifecycle policies that name what is not there, or hold states that no node ever reaches, or ever leaves.

What needs nothing but the policy's own text, it refuses itself: see assay.model.policy_sense.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import nearest
from assay.model.checks import CheckCatalog
from assay.model.nodespec import NodeSpec
from assay.model.policy import LifecyclePolicy, State


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
    """Find states that require or watch a phase for which no check is declared that decides."""
    checks = [check for _, check in draft.checks if not check.observed]
    for policy in draft.of(LifecyclePolicy).values():
        for name, state in policy.states.items():
            wanted = [(phase, False, "watch") for phase in state.watch]
            wanted += [(need.phase, need.active, "requires") for need in state.requires]
            for phase, active, entry in wanted:
                if not any(phase in check.phases and (check.active or not active) for check in checks):
                    kind = "active check" if active else "check"
                    place = draft.at(f"LifecyclePolicy/{policy.name}", "states", name, entry)
                    said = f"{name}: no {kind} that decides has the phase {phase}"
                    yield Finding(place, said, "declare one in specs/checks, or promote one that observes")


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


@rule("ASY0075", "a state that no node ever leaves", why="Nodes would gather there, and nobody would be told.")
def inescapable_state(draft: Draft) -> Iterator[Finding]:
    """Find states with edges out that nothing takes: no pass, no certification, no deadline leads back into service."""
    for policy in draft.of(LifecyclePolicy).values():
        home = {name for name, state in policy.states.items() if state.in_service}
        while grown := {name for name, state in policy.states.items() if home & set(_healthy_ways(state))} - home:
            home |= grown
        for name, state in policy.states.items():
            if name not in home and not state.final:
                place = draft.at(f"LifecyclePolicy/{policy.name}", "states", name)
                said = f"a node in {name} has no way that ends in service, however well it is"
                yield Finding(place, said, "give it pass_to, certified_to or a deadline, or say final: true")


@rule(
    "ASY0076", "a ladder of remedies that cannot end", why="Automation would repeat itself, and no person would look."
)
def endless_ladder(draft: Draft) -> Iterator[Finding]:
    """Find last steps, which are never used up, after which a node is back in service without a person."""
    for policy in draft.of(LifecyclePolicy).values():
        for remedy, rung in policy.ladder.rungs.items():
            way = _unattended(policy, rung.to) if rung.then is None else []
            if way:
                place = draft.at(f"LifecyclePolicy/{policy.name}", "ladder", "rungs", remedy)
                said = f"{remedy} is a last step, but {' → '.join(way)} takes no person"
                yield Finding(place, said, "let a last step lead to a state that is left by certified_to")


@rule(
    "ASY0192",
    "a rack rule that no node spec bears out",
    why="The rack would be cordoned too late, too early or never.",
    needs=(NodeSpec,),
)
def unborne_rack_rule(draft: Draft) -> Iterator[Finding]:
    """Find rack rules for specs that are not there, that are no rack-scale machine, or of another size."""
    specs = draft.of(NodeSpec)
    for policy in draft.of(LifecyclePolicy).values():
        for title, answer in policy.racks.items():
            for number, name in enumerate(answer.node_specs):
                place = draft.at(f"LifecyclePolicy/{policy.name}", "racks", title, "node_specs", number)
                if name not in specs:
                    yield Finding(place, f"{title}: no NodeSpec is called {name}", nearest(name, specs))
                elif (whole := specs[name].rack) is None or whole.nodes != answer.of:
                    has = f"{whole.nodes} nodes are" if whole else "no whole rack is"
                    said = f"{title} speaks of {answer.of} nodes, but {has} a machine of {name}"
                    yield Finding(place, said, f"correct `of`, or the `rack` of {name}")


def _healthy_ways(state: State) -> list[str]:
    """Return where a node without any fault goes."""
    deadline = state.deadline.to if state.deadline else None
    return [target for target in (state.pass_to, state.certified_to, deadline) if target]


def _unattended(policy: LifecyclePolicy, start: str) -> list[str]:
    """Return a way from a state into service that no person has to open, state by state; empty where there is none."""
    came_from = {start: ""}
    waiting = [start]
    while waiting:
        here = waiting.pop(0)
        if policy.states[here].in_service:
            way = [here]
            while came_from[way[0]]:
                way.insert(0, came_from[way[0]])
            return way
        for field, target in policy.states[here].ways_out():
            if field != "certified_to" and target not in came_from:
                came_from[target] = here
                waiting.append(target)
    return []


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
