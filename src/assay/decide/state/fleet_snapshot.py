"""The input of a decision. A decision reads nothing else and remembers nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime

from assay.decide.state.fault_weeks import FaultWeeks
from assay.decide.state.node_state import NodeState
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.outcome import CheckSubject, RecordedOutcome
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.fault_relations import UNRELATED, FaultRelations
from assay.model.specs.known_issues import KnownIssue
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node_settings import PoolCapacity
from assay.model.specs.policy_sections import LifecycleState
from assay.model.specs.trust_rules import TRUSTED, Trust

PoolRack = tuple[str, str, str]
"""Pool, site and rack."""
NodeTrait = tuple[str, str]
"""What a node shares with others, by kind and name: `("leaf", "leaf-03")`, `("spec commit", "1a2b3c4")`."""
NodeTraits = frozenset[NodeTrait]
COMMIT = "commit that changed what fails"
"""The kind of the trait that names the commit since which checks of the node fail."""
SWITCH_TRAY = "switch tray"
"""The kind of the trait that names where all sick NVLinks of the node's rack lead."""


@frozen
class NodeSnapshot:
    """One node, as the inventory, the ledger and its scheduler describe it.

    `declared` holds every check and subject of the node, of any phase; `latest` the newest outcome of each, as
    `Ledger.latest` returns them, without those of another machine. `jobs` are the names of the customers' jobs, None if
    the scheduler did not answer. `cordon` is the reason of the cordon, "" if there is none, None if that is unknown.
    `foreign_cordon` is why somebody other than assay keeps the node closed, "" if nobody does. `judging_hashes` are, by
    check, what an outcome must have been judged by today; a check that is not in it may be judged by anything.
    """

    node: Node
    profile: ManagementProfile
    node_state: NodeState
    declared: tuple[tuple[CheckDeclaration, CheckSubject], ...] = ()
    latest: tuple[RecordedOutcome, ...] = ()
    jobs: tuple[str, ...] | None = ()
    cordon: str | None = None
    foreign_cordon: str = ""
    judging_hashes: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@frozen
class FleetSnapshot:
    """The fleet at one moment. Every enrolled node is in it, since limits count them all.

    `nodes` are those that a decision may be about, or that count as out. `quiet_counts` counts the others by pool and
    rack: nodes in service, with nothing pending, no fault within the breaker's window and no transition within the
    hour. It may be empty, with every node in `nodes`: the decisions are the same. A rack that is one machine is in
    `nodes` whole when any of its nodes is out (see `rack_cordons.find_rack_companions`).

    `lines` is `Fleet.lines`; with it a decision names the line of its rule. `known_issues` holds expired ones too.
    `observing_checks` are the ids of checks that decide nothing yet. `traits` are, by node name, what a node may have
    in common with others, and `pools` the pool of each; only an open breaker reads them. `running_rollouts` are the ids
    of the rollouts whose orders may be carried out now. `rolling_nodes` do not match their spec because a rollout has
    not reached them yet.
    `settings_of_checks` are, by check, the settings of the node spec that it reads, as paths of `SETTING_ROLES`.
    `proofs` are, by fault, the parts of a load and the checks that prove its repair. `relations` say what
    follows from what. `trust` says how far automation goes. `refused_zaps` says, by node, why a zap would be refused.
    `fault_weeks` is how often faults came until now. `capacities` are what pools deliver, by pool. `find_commit` finds
    the commit since which a failed check asks something else than when it last passed, "" for none.
    """

    now: datetime
    policy: LifecyclePolicy
    nodes: tuple[NodeSnapshot, ...]
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)
    known_issues: tuple[KnownIssue, ...] = ()
    observing_checks: frozenset[str] = frozenset()
    quiet_counts: Mapping[PoolRack, int] = field(default_factory=dict)
    traits: Mapping[str, NodeTraits] = field(default_factory=dict)
    pools: Mapping[str, str] = field(default_factory=dict)
    running_rollouts: frozenset[str] = frozenset()
    rolling_nodes: frozenset[str] = frozenset()
    settings_of_checks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    proofs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    relations: FaultRelations = UNRELATED
    trust: Trust = TRUSTED
    refused_zaps: Mapping[str, str] = field(default_factory=dict)
    fault_weeks: FaultWeeks = field(default_factory=FaultWeeks)
    capacities: Mapping[str, PoolCapacity] = field(default_factory=dict)
    find_commit: Callable[[RecordedOutcome], str] = lambda _: ""

    def policy_state_of(self, view: NodeSnapshot) -> LifecycleState:
        """Return the state that a node is in. Raises KeyError for one that the policy does not have."""
        return self.policy.states[view.node_state.state]

    def format_rule(self, path: str, name: str) -> str:
        """Return `file:line name` of a part of the policy, by its dotted path."""
        where = self.lines.get((f"LifecyclePolicy/{self.policy.name}", path), "")
        return f"{where} {name}".strip()
