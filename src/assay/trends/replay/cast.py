"""Who plays: the nodes of the inventory, and those that only the history knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.model.profile import ManagementProfile
from assay.trends.replay.events import Event
from assay.trends.replay.rules import Rules

POOL = "unlisted"
"""The pool of nodes that no inventory knows, where the history does not say another."""


def cast(listed: Mapping[str, Node], events: Iterable[Event], rules: Rules) -> dict[str, Node]:
    """Return every node by name. A stranger stands where its first event says, else in a rack of its own.

    Raises Trouble where no profile lets automation act on strangers.
    """
    nodes = dict(listed)
    for event in events:
        if event.node not in nodes:
            rack, pool = event.rack or event.node, event.pool or POOL
            nodes[event.node] = Node(event.node, pool, "", rack, 0, "", "", _profile(rules.profiles))
    return nodes


def starts(listed: Mapping[str, Node], rules: Rules) -> dict[str, str]:
    """Return where the nodes of the inventory start. Raises Trouble for a start that the policy does not have."""
    found = {name: str(node.variables.get("lifecycle_start", "onboard")) for name, node in listed.items()}
    for name, state in found.items():
        if state not in rules.policy.states:
            raise Trouble(
                f"lifecycle_start is {state!r}, which is no state of the policy {rules.policy.name}",
                where=name,
                fix=f"use one of {', '.join(rules.policy.states)}",
            )
    return found


def _profile(profiles: Mapping[str, ManagementProfile]) -> str:
    """Return the profile that allows the most."""
    acting = [profile for profile in profiles.values() if profile.acts_on_faults]
    if not acting:
        raise Trouble(
            "the history has nodes that the inventory does not know, and no profile lets automation act on them",
            where="specs/profiles",
            fix="write a profile with acts_on_faults: true, or list the nodes in the inventory",
        )
    return max(acting, key=lambda profile: (len(profile.actions), profile.name)).name
