"""The nodes of a replay: those of the inventory, and those that only the history names.

The durations that a replay assumes. Each has a source; the result lists those that it used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from assay.decide.plan.inputs import ACTION_HOURS, PERSON_HOURS, SUITE_HOURS, AssumedHours
from assay.decide.replay.history import HistoryEvent
from assay.decide.state.node_entry import find_start_state
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.specs.check_catalog import CheckDeclaration, Phase
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.management_profile import ManagementProfile

LOOK_DURATION = AssumedHours(1 / 60, "Crusoe instance health, OCI fast conditions: passive checks every 60 s")
VENDOR_DURATION = AssumedHours(240, "our own choice: a part is returned and exchanged within ten days")


@frozen
class ReplayDurations:
    """`actions` by name. An action that is not listed takes no time.

    A drain takes its time only if customers use the node. `suites`: a verification that loads the hardware; `look`: one
    that only reads it. `person`: until a person certifies a node whose fault is cleared; `vendor`: the same for a node
    that goes back to its vendor.
    """

    actions: Mapping[str, AssumedHours] = field(default_factory=lambda: ACTION_HOURS)
    suites: AssumedHours = SUITE_HOURS
    person: AssumedHours = PERSON_HOURS
    look: AssumedHours = LOOK_DURATION
    vendor: AssumedHours = VENDOR_DURATION

    def list_used(self) -> dict[str, AssumedHours]:
        """Return every duration that takes time, by name."""
        others = {"suites": self.suites, "look": self.look, "person": self.person, "vendor": self.vendor}
        return {name: assumed for name, assumed in {**self.actions, **others}.items() if assumed.hours}


@dataclass(frozen=True)
class ReplayRules:
    """`lines` are those of `Fleet.lines`, with the policy's own, so that a decision names its rule's line."""

    policy: LifecyclePolicy
    catalog: FaultCatalog
    profiles: Mapping[str, ManagementProfile]
    durations: ReplayDurations
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @cached_property
    def checks(self) -> dict[Phase, CheckDeclaration]:
        """One check for each phase that a state requires. A history says no more about the suites of a fleet."""
        wanted = [want for state in self.policy.states.values() for want in state.requires]
        active = {want.phase for want in wanted if want.active}
        checks = {}
        for phase in sorted({want.phase for want in wanted}):
            ident = f"suites/{phase.replace('-', '_')}/replayed.py::test_all"
            checks[phase] = CheckDeclaration(id=ident, subject="node", phases=[phase], active=phase in active)
        return checks


UNLISTED_POOL = "unlisted"
"""The pool of nodes that no inventory knows, where the history does not say another."""


@dataclass(frozen=True)
class ReplayNodes:
    """Every node by name; the start of each node outside of production; how many more quiet nodes each pool has."""

    nodes: Mapping[str, Node]
    starts: Mapping[str, str]
    unlisted_counts: Mapping[str, int]


def collect_replay_nodes(listed: Mapping[str, Node], events: Iterable[HistoryEvent], rules: ReplayRules) -> ReplayNodes:
    """Return the nodes of a replay. An unlisted node is in the rack that its first event names, else in its own rack.

    Raises AssayError if no profile lets automation act on unlisted nodes, or if the inventory starts a node in a state
    that the policy does not have.
    """
    nodes = _nodes(listed, events, rules)
    return ReplayNodes(nodes, _starts(listed, rules), _count_unlisted(listed, nodes, rules))


def _nodes(listed: Mapping[str, Node], events: Iterable[HistoryEvent], rules: ReplayRules) -> dict[str, Node]:
    nodes = dict(listed)
    for event in events:
        if event.node not in nodes:
            rack, pool = event.rack or event.node, event.pool or UNLISTED_POOL
            nodes[event.node] = Node(event.node, pool, "", rack, 0, "", "", _profile(rules.profiles))
    return nodes


def _count_unlisted(listed: Mapping[str, Node], nodes: Mapping[str, Node], rules: ReplayRules) -> dict[str, int]:
    """Return how many more nodes replay assumes in each pool that the inventory does not have.

    A history names only nodes with events. So replay assumes the smallest pool for which the breaker's share and its
    least number of nodes mean the same.
    """
    breaker, known = rules.policy.breaker, {node.pool for node in listed.values()}
    named = Counter(node.pool for node in nodes.values() if node.pool not in known)
    least = int(breaker.min_nodes * 100 / breaker.percent)
    return {pool: least - count for pool, count in named.items() if count < least}


def _starts(listed: Mapping[str, Node], rules: ReplayRules) -> dict[str, str]:
    starts: dict[str, str] = {name: find_start_state(rules.policy, node, None) for name, node in listed.items()}
    for name, state in starts.items():
        if state not in rules.policy.states:
            raise AssayError(
                f"lifecycle_start is {state!r}, which is no state of the policy {rules.policy.name}",
                where=name,
                fix=f"use one of {', '.join(rules.policy.states)}",
            )
    return starts


def _profile(profiles: Mapping[str, ManagementProfile]) -> str:
    """Return the profile that allows the most."""
    acting = [profile for profile in profiles.values() if profile.acts_on_faults]
    if not acting:
        raise AssayError(
            "the history has nodes that the inventory does not know, and no profile lets automation act on them",
            where="specs/profiles",
            fix="write a profile with acts_on_faults: true, or list the nodes in the inventory",
        )
    return max(acting, key=lambda profile: (len(profile.actions), profile.name)).name


def drop_reminder_deadlines(policy: LifecyclePolicy) -> LifecyclePolicy:
    """Return the policy without deadlines that only remind people: a replay assumes how long work takes."""
    states = {
        name: state if state.deadline is None or state.deadline.to else state.model_copy(update={"deadline": None})
        for name, state in policy.states.items()
    }
    return policy.model_copy(update={"states": states})
