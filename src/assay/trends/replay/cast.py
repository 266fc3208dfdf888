"""Who plays: the nodes of the inventory, and those that only the history knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.model.profile import ManagementProfile
from assay.trends.replay.events import Event
from assay.trends.replay.rules import Rules

POOL = "unlisted"
"""The pool of nodes that no inventory knows, where the history does not say another."""


@dataclass(frozen=True)
class Cast:
    """Every node by name; where one starts that is not in production; how many more a pool has, all of them quiet."""

    nodes: Mapping[str, Node]
    starts: Mapping[str, str]
    unseen: Mapping[str, int]


def cast(listed: Mapping[str, Node], events: Iterable[Event], rules: Rules) -> Cast:
    """Return who plays. A stranger stands where its first event says, else in a rack of its own.

    Raises Trouble where no profile lets automation act on strangers, and where the inventory starts a node in a state
    that the policy does not have.
    """
    nodes = _nodes(listed, events, rules)
    return Cast(nodes, _starts(listed, rules), _unseen(listed, nodes, rules))


def _nodes(listed: Mapping[str, Node], events: Iterable[Event], rules: Rules) -> dict[str, Node]:
    nodes = dict(listed)
    for event in events:
        if event.node not in nodes:
            rack, pool = event.rack or event.node, event.pool or POOL
            nodes[event.node] = Node(event.node, pool, "", rack, 0, "", "", _profile(rules.profiles))
    return nodes


def _unseen(listed: Mapping[str, Node], nodes: Mapping[str, Node], rules: Rules) -> dict[str, int]:
    """Return how many nodes more each pool is taken to have that no inventory knows.

    A history names only nodes that something happened to. Such a pool is taken to be no smaller than the smallest for
    which the breaker's share and its least number of nodes mean the same.
    """
    breaker, known = rules.policy.breaker, {node.pool for node in listed.values()}
    named = Counter(node.pool for node in nodes.values() if node.pool not in known)
    least = int(breaker.min_nodes * 100 / breaker.percent)
    return {pool: least - count for pool, count in named.items() if count < least}


def _starts(listed: Mapping[str, Node], rules: Rules) -> dict[str, str]:
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
