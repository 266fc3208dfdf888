"""Limits, numbers and actions of a policy that nobody can mean; and nodes that enter where it gives no way or proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from pydantic import BaseModel

from assay.declare.check import RuleFinding, rule
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import suggest_name
from assay.declare.rules.measurement_limits import NumberBound
from assay.model.decision import CLOSING_ACTIONS, REPAIR_ACTIONS
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import count_allowed_out
from assay.model.text.lists import format_nodes

CERTAINLY_LARGE = 64  # nodes: a breaker that needs more, and more than the largest pool has, is a typing error
FEW_RESTARTS = 60  # an hour: so many are a limit in a fleet of any size


DURATION_BOUNDS = {
    "hours": NumberBound(0.1, 87_600, "h"),
    "minutes": NumberBound(0.1, 5_256_000, "min"),
    "days": NumberBound(0.1, 3650, "days"),
}
"""By the last word of a field's name: six minutes (or seconds) to ten years. 0 can always be meant."""
COUNT_BOUNDS = {
    "times": NumberBound(1, 100, "times"),
    "again": NumberBound(1, 100, "times"),
    "reboots_per_hour": NumberBound(1, 600, "restarts"),
}
"""By field: what happens more often in one window has no end."""


@rule("ASY0221", "a breaker that no wave of a pool can open")
def unreachable_breaker(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """All nodes of the pool can fail at once, and automation takes out as many as the limit allows."""
    sizes = Counter(host.pool for host in draft.hosts if host.settings)
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for path, _, least in policy.breaker.list_shares():
            for pool, size in sorted(sizes.items()):
                if size < least and count_allowed_out(size, policy.limits.pool_percent) > 1:
                    place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path, "min_nodes")
                    message = f"the breaker needs {least} nodes, and pool {pool} has {size}"
                    yield RuleFinding(place, message, f"use at most {size}, or lower limits.pool_percent")
            largest = max(sizes.values(), default=0)
            exempt = count_allowed_out(largest, policy.limits.pool_percent) <= 1
            if exempt and least > max(largest, CERTAINLY_LARGE) and draft.all_hosts_read:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path, "min_nodes")
                message = f"the breaker needs {least} nodes, and the largest pool has {largest}"
                yield RuleFinding(place, message, "use at most the number of nodes of a pool")


@rule("ASY0222", "a breaker that opens after the limit is used up")
def late_breaker(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Automation has taken out as many nodes as it may before anybody is told that they have one cause."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        most = policy.limits.pool_percent
        shares = [((*path, "percent"), percent) for path, percent, _ in policy.breaker.list_shares()]
        for path, percent in [(("limits", "pool_percent"), most), *shares]:
            place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path)
            name = ".".join(map(str, path))
            if percent < 1:
                message = f"{name} is {percent:g} %: less than one node of a hundred"
                yield RuleFinding(place, message, f"write a percentage: {percent * 100:g} for this fraction")
            elif percent > most >= 1:
                message = f"{name} is {percent:g} %, but automation stops at limits.pool_percent, {most:g} %"
                yield RuleFinding(place, message, f"use at most {most:g}, so that the breaker opens first")


@rule("ASY0243", "a number of a policy that cannot be meant")
def impossible_policy_number(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A window of 36 s forgets everything at once, and a thousand repeats are repairs without end."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for path, number in _list_numbers(policy, ()):
            name = next(step for step in reversed(path) if isinstance(step, str))
            bound = COUNT_BOUNDS.get(name) or DURATION_BOUNDS.get(name.rpartition("_")[2])
            if bound and number != 0 and not bound.low <= number <= bound.high:
                message = f"{'.'.join(map(str, path))} is {number:g} {bound.unit}"
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path)
                yield RuleFinding(place, message, f"use {bound.low:g} to {bound.high:,g} {bound.unit}")
        yield from _restarts_of_all_nodes(draft, policy)


def _restarts_of_all_nodes(draft: RepositoryDraft, policy: LifecyclePolicy) -> Iterator[RuleFinding]:
    """Find a limit by which every node of the fleet may restart within an hour, which limits nothing."""
    most, nodes = policy.limits.reboots_per_hour, len(draft.hosts)
    if draft.all_hosts_read and max(FEW_RESTARTS, nodes) < most <= COUNT_BOUNDS["reboots_per_hour"].high:
        place = draft.find_position(f"LifecyclePolicy/{policy.name}", "limits", "reboots_per_hour")
        message = f"limits.reboots_per_hour is {most}: all {nodes} nodes may restart within an hour"
        yield RuleFinding(place, message, f"use at most {max(FEW_RESTARTS, nodes // 2)}")


def _list_numbers(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    """Yield path and value of every number below a part of a policy."""
    if isinstance(value, BaseModel):
        for name in value.model_fields_set:
            yield from _list_numbers(getattr(value, name), (*path, name))
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from _list_numbers(entry, (*path, name))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _list_numbers(entry, (*path, number))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


@rule("ASY0244", "a restart of a node that is open")
def restart_of_open_node(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The scheduler starts jobs on the node until the moment of the restart, which kills them."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        entered = _find_entered_open(policy)
        for name in sorted(entered):
            entry = policy.states[name].entry
            action = next((action for action in entry if action in REPAIR_ACTIONS | CLOSING_ACTIONS), "")
            if action in REPAIR_ACTIONS:
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name, "entry")
                message = f"{name}: nothing closes the node before {action}, and a node can come here from service"
                yield RuleFinding(place, message, f"write `entry: [cordon, drain, {action}]`")


def _find_entered_open(policy: LifecyclePolicy) -> set[str]:
    """Return the states that a node from service can enter while no state on its way has closed it."""
    waiting = list(policy.states_in_service)
    entered: set[str] = set()
    while waiting:
        name = waiting.pop()
        for target in (*policy.edges.get(name, ()), *policy.anywhere):
            if target not in entered:
                entered.add(target)
                if CLOSING_ACTIONS.isdisjoint(policy.states[target].entry):
                    waiting.append(target)
    return entered


@rule("ASY0073", "a node that starts in no state", needs=(LifecyclePolicy,))
def unknown_start(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The policy does not say how such a node moves on."""
    states = {state for policy in draft.specs_of_model(LifecyclePolicy).values() for state in policy.states}
    for host in draft.hosts if states else ():
        if host.settings and host.settings.lifecycle_start not in states:
            start = host.settings.lifecycle_start
            message = f"{host.name}: no LifecyclePolicy has the state {start}"
            yield RuleFinding(host.find_position("lifecycle_start"), message, suggest_name(start, states))


@rule("ASY0098", "a node that starts in service without proof", needs=(LifecyclePolicy,))
def unproved_start(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Customers would get a node that nobody has tested."""
    policies = draft.specs_of_model(LifecyclePolicy).values()
    serving = frozenset(chain.from_iterable(policy.states_in_service for policy in policies))
    imported: dict[str, HostDeclaration] = {}
    seen: set[int] = set()  # identities of the mappings, each of which the hosts of a pool share
    for host in draft.hosts:
        if host.settings and host.settings.lifecycle_start in serving:
            message = f"{host.name} starts in {host.settings.lifecycle_start}, which is in service"
            yield RuleFinding(host.find_position("lifecycle_start"), message, "name it in a service_import instead")
        if host.settings and host.settings.service_import and draft.all_hosts_read:
            if id(host.variables["service_import"]) not in seen:
                imported.update(dict.fromkeys(host.settings.service_import.names, host))
            seen.add(id(host.variables["service_import"]))
    for name in sorted(imported.keys() - {host.name for host in draft.hosts}):
        message = f"a service_import names {name}, which is no node"
        yield RuleFinding(imported[name].find_position("service_import"), message, "correct the name, or take it out")


@rule("ASY0226", "a service_import that has expired", severity="warning")
def expired_import(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """It lets no node in any more: a node that it names and that assay has not seen yet starts through proof."""
    expired = {}
    for host in draft.hosts:
        service_import = host.settings.service_import if host.settings else None
        if service_import and service_import.expires_at <= draft.now:
            expired[host.find_position("service_import")] = service_import
    for place, service_import in expired.items():
        message = f"the service_import of {format_nodes(service_import.nodes)} expired on {service_import.expires}"
        yield RuleFinding(place, message, "take it out; while nodes that serve are still unseen, agree on another day")


@rule("ASY0413", "a pool that cannot deliver what it declares", needs=(LifecyclePolicy,))
def impossible_capacity(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Nobody can deliver nodes that are not there, and no spare comes where the policy has no state for spares."""
    sizes = Counter(host.pool for host in draft.hosts)
    has_spares = any(policy.spare_state for policy in draft.specs_of_model(LifecyclePolicy).values())
    declared = {host.pool: (host.settings.capacity, host) for host in draft.hosts if host.settings}
    for pool, (capacity, host) in declared.items():
        place = host.find_position("capacity")
        if capacity and draft.all_hosts_read and capacity.delivered + capacity.spares > sizes[pool]:
            message = f"{pool} has {sizes[pool]} nodes, and declares {capacity.delivered} and {capacity.spares} spares"
            yield RuleFinding(place, message, "declare fewer, or add nodes")
        elif capacity and not has_spares:
            message = f"{pool} declares what it delivers, and no state of the policy has spare: true"
            yield RuleFinding(place, message, "add the state; `assay upgrade` brings it")
