"""Lifecycle policies with unknown names or unreachable states, and profiles and checklists that do not fit the policy.

What a policy contradicts in itself, its model refuses: see assay.model.specs.lifecycle_policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.declare.check import RuleFinding, rule
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import suggest_name
from assay.declare.rules.fault_rules import compute_rule_reach, decode_kinds, list_fault_kinds, list_target_states
from assay.model.specs.check_catalog import CheckCatalog
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.serving import AccessRules
from assay.model.specs.technician_work import Checklists


@rule("ASY0210", "a checklist for a state that needs no certification", needs=(LifecyclePolicy,))
def unknown_checklist_state(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The checklist is on no ticket, or on a ticket that no certification closes."""
    policies = draft.specs_of_model(LifecyclePolicy).values()
    waiting = {name for policy in policies for name, state in policy.states.items() if state.certified_to}
    for document in draft.specs_of_model(Checklists).values() if policies else ():
        for name in document.states:
            if name not in waiting:
                place = draft.find_position(f"Checklists/{document.name}", "states", name)
                message = f"no state {name} waits for a technician's certification"
                yield RuleFinding(place, message, suggest_name(name, waiting))


@rule("ASY0070", "a state that no node ever reaches")
def unreachable_state(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The policy never does what it says for this state."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        starts = {_start_of(host, policy) for host in draft.hosts if host.settings}
        reached = _find_reachable(policy, {next(iter(policy.states)), *starts})
        for state in policy.states:
            if state not in reached:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", state)
                yield RuleFinding(place, f"no edges lead to {state}", "draw an edge to it, or remove it")


@rule("ASY0071", "a state that requires checks that do not exist", needs=(CheckCatalog,))
def empty_requirement(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Nodes leave this state without any proof."""
    checks = [check for _, check in draft.declared_checks if not check.is_observe_only]
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            wanted = [(phase, False, "watch") for phase in state.watch]
            wanted += [(need.phase, need.active, "requires") for need in state.requires]
            for phase, active, entry in wanted:
                if not any(phase in check.phases and (check.active or not active) for check in checks):
                    kind = "active check" if active else "check"
                    place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name, entry)
                    message = f"{name}: the phase {phase} has no {kind} that counts (checks on trial do not)"
                    yield RuleFinding(place, message, "declare one in specs/checks, or promote one that observes")


@rule("ASY0074", "two lifecycle policies")
def several_policies(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A node follows one policy, and nothing says which one."""
    policies = list(draft.specs_of_model(LifecyclePolicy))
    for name in policies[1:]:
        place = draft.find_position(f"LifecyclePolicy/{name}", "name")
        yield RuleFinding(place, f"there is already a policy {policies[0]}", "keep one of the two")


@rule("ASY0075", "a state that no node ever leaves")
def inescapable_state(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Nodes gather there, and nobody notices."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        home = policy.states_in_service
        exits = {}  # to where a node without faults can go
        for name, state in policy.states.items():
            exits[name] = {state.pass_to, state.certified_to, state.deadline.to if state.deadline else None}
            if state.spare:  # it is called when another node is out
                exits[name].update(home.intersection(policy.edges.get(name, ())))
        while further := {name for name, targets in exits.items() if home & targets} - home:
            home |= further
        for name, state in policy.states.items():
            if name not in home and not state.final:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name)
                message = f"no way leads from {name} back into service, not even for a healthy node"
                yield RuleFinding(place, message, "give it pass_to, certified_to or a deadline, or write final: true")


@rule("ASY0076", "a ladder of remedies that cannot end")
def endless_ladder(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Automation repeats the remedies for ever, and no person looks at the node."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for remedy, rung in policy.ladder.rungs.items():
            path = _find_automatic_path(policy, rung.to) if rung.then is None else []
            if path:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "ladder", "rungs", remedy)
                message = (
                    f"{remedy} is a last step, but {' → '.join(path)} returns the node to service without a person"
                )
                yield RuleFinding(place, message, "let the last step lead to a state that nodes leave by certified_to")


@rule("ASY0192", "a rack rule that contradicts the node specs", needs=(NodeSpec,))
def unsupported_rack_rule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay cordons such a rack too late, too early or never."""
    specs = draft.specs_of_model(NodeSpec)
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for title, rack_rule in policy.racks.items():
            for number, name in enumerate(rack_rule.node_specs):
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "racks", title, "node_specs", number)
                if name not in specs:
                    yield RuleFinding(place, f"{title}: there is no NodeSpec {name}", suggest_name(name, specs))
                elif (rack := specs[name].rack) is None or rack.nodes != rack_rule.of:
                    actual = f"{rack.nodes} nodes are" if rack else "no whole rack is"
                    message = f"{title} says {rack_rule.of} nodes, but {actual} one machine of {name}"
                    yield RuleFinding(place, message, f"correct `of`, or the `rack` of {name}")


def _find_automatic_path(policy: LifecyclePolicy, start: str) -> list[str]:
    """Return the states on a path into service without a person's certification; an empty list if there is none."""
    came_from = {start: ""}
    waiting = [start]
    while waiting:
        state = waiting.pop(0)
        if policy.states[state].in_service:
            path = [state]
            while came_from[path[0]]:
                path.insert(0, came_from[path[0]])
            return path
        for field, target in policy.states[state].list_exits():
            if field != "certified_to" and target not in came_from:
                came_from[target] = state
                waiting.append(target)
    return []


def _find_reachable(policy: LifecyclePolicy, starts: set[str]) -> set[str]:
    reached: set[str] = set()
    waiting = [start for start in starts if start in policy.states] + list(policy.anywhere)
    while waiting:
        state = waiting.pop()
        if state not in reached:
            reached.add(state)
            waiting += policy.edges.get(state, [])
    return reached


class PolicyMove(NamedTuple):
    """A move of the policy: from a state to a state, the field or rule that causes it, and the actions it takes."""

    origin: str
    to: str
    by: str
    actions: tuple[str, ...]


@rule("ASY0100", "a profile that forbids an action of the policy", needs=(LifecyclePolicy, FaultCatalog))
def forbidden_move(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The node can never reach its next state."""
    # Only states that such nodes can reach are considered. A profile that does not act on faults needs no actions for
    # moves by faults. It needs none for an escalation either, if a person can certify the node out of its state.
    for policy in list(draft.specs_of_model(LifecyclePolicy).values())[:1]:
        starts = {(host.settings.profile, _start_of(host, policy)) for host in draft.hosts if host.settings}
        fault_moves = _list_fault_moves(draft, policy)
        for profile in draft.specs_of_model(ManagementProfile).values():
            own_starts = [state for name, state in sorted(starts) if name == profile.name and state in policy.states]
            for move, missing in _find_forbidden_moves(policy, profile, fault_moves, own_starts):
                actions = ", ".join(missing)
                label = f"{move.origin} → {move.to} ({move.by})"
                place = draft.find_position(f"ManagementProfile/{profile.name}", "actions")
                fix = f"allow {actions}, or let the policy move such nodes another way"
                yield RuleFinding(place, f"{profile.name} does not allow {actions}, which {label} takes", fix)


def _start_of(host: HostDeclaration, policy: LifecyclePolicy) -> str:
    """Return the state in which a host enters: in service if an import names it."""
    service_import = host.settings.service_import if host.settings else None
    is_imported = host.settings is None or (service_import and host.name in service_import.names)
    return policy.service_state if is_imported or host.settings is None else host.settings.lifecycle_start


def _find_forbidden_moves(
    policy: LifecyclePolicy,
    profile: ManagementProfile,
    fault_moves: Mapping[str, list[PolicyMove]],
    starts: Sequence[str],
) -> Iterator[tuple[PolicyMove, list[str]]]:
    """Yield moves that the profile forbids, one for each target state, with the missing actions."""
    reached = set(starts)
    waiting = list(starts)
    reported = set()
    while waiting:
        state = waiting.pop(0)
        for move in _list_moves(policy, profile, state, fault_moves):
            missing = _missing_actions(move, profile)
            if missing and move.to not in reported:
                reported.add(move.to)
                yield move, missing
            elif not missing and move.to not in reached:
                reached.add(move.to)
                waiting.append(move.to)


def _list_moves(
    policy: LifecyclePolicy, profile: ManagementProfile, state: str, fault_moves: Mapping[str, list[PolicyMove]]
) -> Iterator[PolicyMove]:
    """Yield the moves out of a state that the policy relies on for nodes with this profile."""
    own = [
        PolicyMove(state, to, field, tuple(policy.states[to].entry)) for field, to in policy.states[state].list_exits()
    ]
    by_hand = any(move.by == "certified_to" and not _missing_actions(move, profile) for move in own)
    for move in own:
        if profile.acts_on_faults or not by_hand or not move.by.startswith("escalate"):
            yield move
    yield from fault_moves.get(state, ()) if profile.acts_on_faults else ()


def _list_fault_moves(draft: RepositoryDraft, policy: LifecyclePolicy) -> dict[str, list[PolicyMove]]:
    """Return the moves of the fault rules, by the state that they leave."""
    kinds = list_fault_kinds(draft.specs_of_model(FaultCatalog).values())
    by_state: dict[str, dict[PolicyMove, None]] = {}
    for reach in compute_rule_reach(policy, kinds):
        pending_actions = reach.rule.while_pending if reach.rule.timing == "pending" else []
        for (state, in_use), bits in reach.unclaimed.items():
            at_once = pending_actions if in_use else []  # a decision on an idle node is not pending
            for to in list_target_states(policy, reach.rule, decode_kinds(kinds, bits)):
                if policy.has_edge(state, to):
                    actions = (*policy.states[to].entry, *at_once)
                    by_state.setdefault(state, {})[PolicyMove(state, to, f"faults.{reach.title}", actions)] = None
    return {state: list(moves) for state, moves in by_state.items()}


def _missing_actions(move: PolicyMove, profile: ManagementProfile) -> list[str]:
    return sorted({*move.actions} - {*profile.actions})


@rule("ASY0350", "a customer of a pool that does not exist")
def unknown_customer_pool(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """This customer sees none of its nodes."""
    pools = {host.pool for host in draft.hosts}
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for path, named in _list_customer_pools(policy):
            for number, pool in enumerate(named):
                if pool not in pools:
                    place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path, "pools", number)
                    yield RuleFinding(place, f"there is no pool {pool}", suggest_name(pool, pools))


def _list_customer_pools(policy: LifecyclePolicy) -> Iterator[tuple[tuple[str, ...], Sequence[str]]]:
    access = policy.access or AccessRules()
    yield from ((("access", "visitors", name), rights.pools) for name, rights in access.visitors.items())
    groups = access.proxy.groups if access.proxy else {}
    yield from ((("access", "proxy", "groups", name), rights.pools) for name, rights in groups.items())
    yield from ((("notices", "webhooks", name), hook.pools) for name, hook in policy.notices.webhooks.items())


@rule("ASY0411", "a trust step of a pool that does not exist")
def unknown_trusted_pool(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The pool that is meant has another step."""
    pools = {host.pool for host in draft.hosts}
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for pool in policy.trust.pools:
            if pool not in pools:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "trust", "pools", pool)
                yield RuleFinding(place, f"no node is in pool {pool}", suggest_name(pool, pools))


@rule("ASY0412", "a policy without a trust step", severity="warning")
def missing_trust(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay only watches: it says what it would do, and does nothing."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        if "trust" not in policy.model_fields_set:
            place = draft.find_position(f"LifecyclePolicy/{policy.name}")
            fix = "add `trust: {fleet: watch}`; docs/trust.md says how to raise it"
            yield RuleFinding(place, "it does not say how far automation may go, so assay only watches", fix)
