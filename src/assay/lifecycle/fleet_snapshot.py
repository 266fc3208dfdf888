"""Everything that a decision may look at, handed in whole: deciding asks nobody and remembers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assay.lifecycle.decisions.common_cause import NodeTraits
from assay.lifecycle.node_state import NodeState
from assay.model.node import Node
from assay.model.outcome import CheckSubject, RecordedOutcome
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.specs.known_issues import KnownIssue
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.policy_sections import LifecycleState

PoolRack = tuple[str, str, str]
"""Pool, site and rack."""


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One node: what the inventory, the ledger and its scheduler say.

    `declared`: every check × subject of the node, in any phase; `latest`: the newest outcome of each, as
    `Ledger.latest` gives them; `jobs`: the customers' jobs by name, None where the scheduler could not tell; `cordon`:
    what keeps jobs from it until somebody lifts that, "" where nothing does, None where nobody can tell.
    """

    node: Node
    profile: ManagementProfile
    node_state: NodeState
    declared: tuple[tuple[CheckDeclaration, CheckSubject], ...] = ()
    latest: tuple[RecordedOutcome, ...] = ()
    jobs: tuple[str, ...] | None = ()
    cordon: str | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """The fleet at one moment. Every enrolled node must be in it, since limits count them all.

    `nodes` are those that there may be something to decide about, or that are counted as out. `quiet` counts the
    others by pool, site and rack: nodes in service, with nothing waiting, no fault within the breaker's window and no
    move within the hour. It may be empty, with everybody in `nodes`: the answer is the same. A rack that is one machine
    (see `racks.companions`) is in `nodes` whole, when any of it is out.

    `lines` is `Fleet.lines`; with it a decision names the line of the rule that it follows. `known` are the known
    issues, expired ones too; `observed` the ids of the checks that decide nothing yet. `traits` are what any node of
    the fleet could have in common with others, by name; it is only asked when a breaker trips.
    """

    now: datetime
    policy: LifecyclePolicy
    nodes: tuple[NodeSnapshot, ...]
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)
    known_issues: tuple[KnownIssue, ...] = ()
    observing_checks: frozenset[str] = frozenset()
    quiet_counts: Mapping[PoolRack, int] = field(default_factory=dict)
    traits: Mapping[str, NodeTraits] = field(default_factory=dict)

    def policy_state_of(self, view: NodeSnapshot) -> LifecycleState:
        """Return the state that a node is in. Raises KeyError for one that the policy does not have."""
        return self.policy.states[view.node_state.state]

    def format_rule(self, path: str, name: str) -> str:
        """Return `file:line name` of a part of the policy, by its dotted path."""
        where = self.lines.get((f"LifecyclePolicy/{self.policy.name}", path), "")
        return f"{where} {name}".strip()
