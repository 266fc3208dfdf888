"""How nodes enter: start states that do not exist or skip the proof, and imports that name nobody or have expired."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from assay.declare.declared_hosts import HostDeclaration
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import RuleFinding, rule
from assay.declare.rules.dangling_names import suggest_name
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.text_lists import format_nodes


@rule(
    "ASY0073",
    "a node that starts in no state",
    why="The policy does not say how such a node moves on.",
    needs=(LifecyclePolicy,),
)
def unknown_start(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes with a `lifecycle_start` that is no state of a policy."""
    states = {state for policy in draft.specs_of_model(LifecyclePolicy).values() for state in policy.states}
    for host in draft.hosts if states else ():
        if host.settings and host.settings.lifecycle_start not in states:
            start = host.settings.lifecycle_start
            message = f"{host.name}: no LifecyclePolicy has the state {start}"
            yield RuleFinding(host.find_position("lifecycle_start"), message, suggest_name(start, states))


@rule(
    "ASY0098",
    "a node that starts in service without proof",
    why="Customers would get a node that nobody has tested.",
    needs=(LifecyclePolicy,),
)
def unproved_start(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes whose `lifecycle_start` is in service, and imports that name no node of the inventory."""
    policies = draft.specs_of_model(LifecyclePolicy).values()
    serving = frozenset(chain.from_iterable(policy.states_in_service for policy in policies))
    imports: dict[int, HostDeclaration] = {}  # by the identity of the mapping, which the hosts of a pool share
    for host in draft.hosts:
        if host.settings and host.settings.lifecycle_start in serving:
            message = f"{host.name} starts in {host.settings.lifecycle_start}, which is in service"
            yield RuleFinding(host.find_position("lifecycle_start"), message, "name it in a service_import instead")
        if host.settings and host.settings.service_import and draft.all_hosts_read:
            imports[id(host.variables["service_import"])] = host
    imported = {name: host for host in imports.values() for name in _list_imported(host)}
    for name in sorted(imported.keys() - {host.name for host in draft.hosts}):
        message = f"a service_import names {name}, which is no node"
        yield RuleFinding(imported[name].find_position("service_import"), message, "correct the name")


def _list_imported(host: HostDeclaration) -> list[str]:
    found = host.settings.service_import if host.settings else None
    return found.nodes if found else []


@rule(
    "ASY0226",
    "a service_import that has expired",
    why="It lets no node in any more: a node that it names and that assay has not seen yet starts through proof.",
    severity="warning",
)
def expired_import(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find imports whose day is over, each once."""
    found = {
        (host.find_position("service_import"), host.settings.service_import.expires): host.settings.service_import
        for host in draft.hosts
        if host.settings and host.settings.service_import and host.settings.service_import.expires_at <= draft.now
    }
    for (place, day), one in found.items():
        message = f"the service_import of {format_nodes(one.nodes)} expired on {day}"
        yield RuleFinding(place, message, "take it out; while nodes that serve are still unseen, agree on another day")
