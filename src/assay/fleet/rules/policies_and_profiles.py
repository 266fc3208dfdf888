"""Lifecycle policies that name what is not there, or hold states that no node ever reaches, or ever leaves.

What needs nothing but the policy's own text, it refuses itself: see assay.model.specs.lifecycle_policy.

Checklists that nobody is ever shown.

Management profiles that forbid what the policy relies on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.fleet.check import RuleFinding, rule
from assay.fleet.fault_rule_coverage import compute_rule_reach, decode_kinds, list_fault_kinds, list_target_states
from assay.fleet.repository_draft import RepositoryDraft
from assay.fleet.rules.dangling_names import suggest_name
from assay.model.specs.check_catalog_and_gates import CheckCatalog
from assay.model.specs.checklists import Checklists
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node_spec import NodeSpec
from assay.model.specs.policy_sections import LifecycleState


@rule(
    "ASY0210",
    "a checklist for a state where nobody certifies",
    why="It would be on no ticket, or on one that no certification closes.",
    needs=(LifecyclePolicy,),
)
def unknown_checklist_state(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checklists of states that no policy has, or that wait for nobody's certification."""
    policies = draft.specs_of_model(LifecyclePolicy).values()
    waiting = {name for policy in policies for name, state in policy.states.items() if state.certified_to}
    for listed in draft.specs_of_model(Checklists).values() if policies else ():
        for name in listed.states:
            if name not in waiting:
                place = draft.find_position(f"Checklists/{listed.name}", "states", name)
                yield RuleFinding(
                    place, f"no state {name} waits for a technician's certification", suggest_name(name, waiting)
                )


@rule("ASY0070", "a state that no node ever reaches", why="What the policy promises there would never happen.")
def unreachable_state(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find states to which no edges lead from where nodes begin."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        reached = _reached(policy, {next(iter(policy.states)), *_starts(draft)})
        for state in policy.states:
            if state not in reached:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", state)
                yield RuleFinding(place, f"no edges lead to {state}", "draw an edge to it, or remove it")


@rule(
    "ASY0071",
    "a state that requires checks that do not exist",
    why="Nothing would be proved before it is left.",
    needs=(CheckCatalog,),
)
def empty_requirement(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find states that require or watch a phase for which no check is declared that decides."""
    checks = [check for _, check in draft.declared_checks if not check.is_observe_only]
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            wanted = [(phase, False, "watch") for phase in state.watch]
            wanted += [(need.phase, need.active, "requires") for need in state.requires]
            for phase, active, entry in wanted:
                if not any(phase in check.phases and (check.active or not active) for check in checks):
                    kind = "active check" if active else "check"
                    place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name, entry)
                    said = f"{name}: no {kind} that decides has the phase {phase}"
                    yield RuleFinding(place, said, "declare one in specs/checks, or promote one that observes")


@rule(
    "ASY0073", "a node that starts in no state", why="Its first step would lead from nowhere.", needs=(LifecyclePolicy,)
)
def unknown_start(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes whose `lifecycle_start` is no state of any policy."""
    states = {state for policy in draft.specs_of_model(LifecyclePolicy).values() for state in policy.states}
    for host in draft.hosts if states else ():
        if host.settings and host.settings.lifecycle_start not in states:
            start = host.settings.lifecycle_start
            said = f"{host.name}: no LifecyclePolicy has the state {start}"
            yield RuleFinding(host.find_position("lifecycle_start"), said, suggest_name(start, states))


@rule("ASY0074", "two lifecycle policies", why="A node obeys one policy, and nothing says which.")
def several_policies(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find more than one policy."""
    policies = list(draft.specs_of_model(LifecyclePolicy))
    for name in policies[1:]:
        place = draft.find_position(f"LifecyclePolicy/{name}", "name")
        yield RuleFinding(place, f"{name} stands beside {policies[0]}", "keep one of the two")


@rule("ASY0075", "a state that no node ever leaves", why="Nodes would gather there, and nobody would be told.")
def inescapable_state(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find states with edges out that nothing takes: no pass, no certification, no deadline leads back into service."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        home = {name for name, state in policy.states.items() if state.in_service}
        while grown := {name for name, state in policy.states.items() if home & set(_healthy_exits(state))} - home:
            home |= grown
        for name, state in policy.states.items():
            if name not in home and not state.final:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name)
                said = f"a node in {name} has no way that ends in service, however well it is"
                yield RuleFinding(place, said, "give it pass_to, certified_to or a deadline, or say final: true")


@rule(
    "ASY0076", "a ladder of remedies that cannot end", why="Automation would repeat itself, and no person would look."
)
def endless_ladder(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find last steps, which are never used up, after which a node is back in service without a person."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for remedy, rung in policy.ladder.rungs.items():
            way = _states_without_people(policy, rung.to) if rung.then is None else []
            if way:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "ladder", "rungs", remedy)
                said = f"{remedy} is a last step, but {' → '.join(way)} takes no person"
                yield RuleFinding(place, said, "let a last step lead to a state that is left by certified_to")


@rule(
    "ASY0192",
    "a rack rule that no node spec bears out",
    why="The rack would be cordoned too late, too early or never.",
    needs=(NodeSpec,),
)
def unsupported_rack_rule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find rack rules for specs that are not there, that are no rack-scale machine, or of another size."""
    specs = draft.specs_of_model(NodeSpec)
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for title, answer in policy.racks.items():
            for number, name in enumerate(answer.node_specs):
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "racks", title, "node_specs", number)
                if name not in specs:
                    yield RuleFinding(place, f"{title}: no NodeSpec is called {name}", suggest_name(name, specs))
                elif (whole := specs[name].rack) is None or whole.nodes != answer.of:
                    has = f"{whole.nodes} nodes are" if whole else "no whole rack is"
                    said = f"{title} speaks of {answer.of} nodes, but {has} a machine of {name}"
                    yield RuleFinding(place, said, f"correct `of`, or the `rack` of {name}")


def _healthy_exits(state: LifecycleState) -> list[str]:
    """Return where a node without any fault goes."""
    deadline = state.deadline.to if state.deadline else None
    return [target for target in (state.pass_to, state.certified_to, deadline) if target]


def _states_without_people(policy: LifecyclePolicy, start: str) -> list[str]:
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
        for field, target in policy.states[here].list_exits():
            if field != "certified_to" and target not in came_from:
                came_from[target] = here
                waiting.append(target)
    return []


def _starts(draft: RepositoryDraft) -> set[str]:
    return {host.settings.lifecycle_start for host in draft.hosts if host.settings}


def _reached(policy: LifecyclePolicy, starts: set[str]) -> set[str]:
    reached: set[str] = set()
    waiting = [start for start in starts if start in policy.states] + list(policy.anywhere)
    while waiting:
        state = waiting.pop()
        if state not in reached:
            reached.add(state)
            waiting += policy.edges.get(state, [])
    return reached


class PolicyMove(NamedTuple):
    """A move that the policy makes: from a state, to a state, by what, and the actions that it takes."""

    origin: str
    to: str
    by: str
    actions: tuple[str, ...]


@rule(
    "ASY0100",
    "a profile that forbids what the policy relies on",
    why="A node would be held back from its next state for ever.",
    needs=(LifecyclePolicy, FaultCatalog),
)
def forbidden_move(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find moves of nodes with a profile that begin with an action which the profile does not allow.

    Looked at are the states that such nodes come to. A profile that does not act on faults needs nothing for the moves
    that only faults make; nor does an escalation, where a person may certify the node out of its state instead.
    """
    starts = {(host.settings.profile, host.settings.lifecycle_start) for host in draft.hosts if host.settings}
    for policy in list(draft.specs_of_model(LifecyclePolicy).values())[:1]:
        faulted = _fault_moves(draft, policy)
        for profile in draft.specs_of_model(ManagementProfile).values():
            begin = [state for name, state in sorted(starts) if name == profile.name and state in policy.states]
            for way, missing in _forbidden_moves(policy, profile, faulted, begin):
                move = f"{way.origin} → {way.to} ({way.by})"
                said = f"{profile.name} does not allow {', '.join(missing)}, which {move} takes"
                place = draft.find_position(f"ManagementProfile/{profile.name}", "actions")
                yield RuleFinding(
                    place, said, f"allow {', '.join(missing)}, or let the policy lead such nodes another way"
                )


def _forbidden_moves(
    policy: LifecyclePolicy, profile: ManagementProfile, faulted: Mapping[str, list[PolicyMove]], begin: Sequence[str]
) -> Iterator[tuple[PolicyMove, list[str]]]:
    """Yield, once for each state that is led to, a way that the profile forbids, and what of it."""
    reached, waiting, told = set(begin), list(begin), set()
    while waiting:
        here = waiting.pop(0)
        for way in _policy_moves(policy, profile, here, faulted):
            missing = _missing_actions(way, profile)
            if missing and way.to not in told:
                told.add(way.to)
                yield way, missing
            elif not missing and way.to not in reached:
                reached.add(way.to)
                waiting.append(way.to)


def _policy_moves(
    policy: LifecyclePolicy, profile: ManagementProfile, here: str, faulted: Mapping[str, list[PolicyMove]]
) -> Iterator[PolicyMove]:
    """Yield the moves out of a state on which the policy relies for nodes with this profile."""
    own = [
        PolicyMove(here, to, field, tuple(policy.states[to].entry)) for field, to in policy.states[here].list_exits()
    ]
    by_hand = any(way.by == "certified_to" and not _missing_actions(way, profile) for way in own)
    for way in own:
        if profile.acts_on_faults or not by_hand or not way.by.startswith("escalate"):
            yield way
    yield from faulted.get(here, ()) if profile.acts_on_faults else ()


def _fault_moves(draft: RepositoryDraft, policy: LifecyclePolicy) -> dict[str, list[PolicyMove]]:
    """Return the moves that fault rules make, by the state that they lead out of."""
    kinds = list_fault_kinds(draft.specs_of_model(FaultCatalog).values())
    found: dict[str, dict[PolicyMove, None]] = {}
    for reach in compute_rule_reach(policy, kinds):
        meanwhile = reach.rule.while_pending if reach.rule.timing == "pending" else []
        for (state, in_use), bits in reach.unclaimed.items():
            at_once = meanwhile if in_use else []  # on an idle node nothing is pending
            for to in list_target_states(policy, reach.rule, decode_kinds(kinds, bits)):
                if policy.has_edge(state, to):
                    actions = (*policy.states[to].entry, *at_once)
                    found.setdefault(state, {})[PolicyMove(state, to, f"faults.{reach.title}", actions)] = None
    return {state: list(ways) for state, ways in found.items()}


def _missing_actions(way: PolicyMove, profile: ManagementProfile) -> list[str]:
    return sorted({*way.actions} - {*profile.actions})
