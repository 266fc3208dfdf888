"""Names what a merge switches on that reaches far: by its effect, and with the nodes that it reaches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from assay.decide.plan.inputs import FleetRevision, find_spec_line
from assay.model.fleet import Fleet
from assay.model.text.lists import format_nodes

EFFECTS: Mapping[str, str] = {
    "ac-cycles": "cuts all power of {nodes} where firmware needs that",
    "boot-order": "writes the boot order of {nodes}",
    "network-starts": "each reboot and power cycle of {nodes} orders a start by network",
    "other-accounts": "disables every other account on the BMCs of {nodes}",
    "wipe": "erases the local drives of {nodes} in states that wipe",
}
"""What each is, in the words of a person whom it reaches."""


def list_switched_on(before: FleetRevision, after: FleetRevision) -> Iterator[tuple[str, str]]:
    """Yield effect and `file:line` of everything that the merge switches on."""
    nodes: dict[tuple[str, str], list[str]] = defaultdict(list)
    was = {name: set(_list_effects(before.fleet, name)) for name in before.fleet.nodes}
    of_new_nodes = set().union(*was.values())  # a node that comes to nodes which have it switches nothing on
    for name, node in after.fleet.nodes.items():
        for effect in set(_list_effects(after.fleet, name)) - was.get(name, of_new_nodes):
            nodes[effect, node.profile].append(name)
    for (effect, profile), names in sorted(nodes.items()):
        line = find_spec_line(after.fleet, f"ManagementProfile/{profile}", "may")
        yield EFFECTS[effect].format(nodes=format_nodes(names)), line
    told_before, will = before.policy.notices, after.policy.notices
    if will.scheduler.shown and not told_before.scheduler.shown:
        line = after.policy_line("notices.scheduler.shown")
        yield "customers are told, on every node that leaves service, what becomes of it", line
    for customer in sorted(will.webhooks.keys() - told_before.webhooks.keys()):
        text = f"messages about their nodes go to the customer {customer}"
        yield text, after.policy_line(f"notices.webhooks.{customer}")


def _list_effects(fleet: Fleet, name: str) -> Iterator[str]:
    """Yield the effects that specs ask for and the profile of a node allows."""
    profile, spec = fleet.profile_of(name), fleet.spec_of(name)
    asked = {
        "ac-cycles": any(part.reset == "ac" for part in fleet.bundle_of(name).components),
        "boot-order": bool(spec.boot.first),
        "network-starts": fleet.provisioning_of(name) is not None,
        "other-accounts": spec.bmc.accounts.complete,
        "wipe": spec.wipe is not None,
    }
    yield from (effect for effect in profile.may if asked[effect])
