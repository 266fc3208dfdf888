"""Everything that a decision may look at, handed in whole: deciding asks nobody and remembers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assay.lifecycle.common import Traits
from assay.lifecycle.story import Story
from assay.model.checks import Check
from assay.model.fleet import Node
from assay.model.known import KnownIssue
from assay.model.outcome import Recorded
from assay.model.policy import LifecyclePolicy, State
from assay.model.profile import ManagementProfile
from assay.model.subject import Subject

Place = tuple[str, str, str]
"""Pool, site and rack."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node: what the inventory, the ledger and its scheduler say.

    `declared`: every check × subject of the node, in any phase; `latest`: the newest outcome of each, as
    `Ledger.latest` gives them; `jobs`: the customers' jobs by name, None where the scheduler could not tell; `cordon`:
    what keeps jobs from it until somebody lifts that, "" where nothing does, None where nobody can tell.
    """

    node: Node
    profile: ManagementProfile
    story: Story
    declared: tuple[tuple[Check, Subject], ...] = ()
    latest: tuple[Recorded, ...] = ()
    jobs: tuple[str, ...] | None = ()
    cordon: str | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class Situation:
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
    nodes: tuple[NodeView, ...]
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)
    known: tuple[KnownIssue, ...] = ()
    observed: frozenset[str] = frozenset()
    quiet: Mapping[Place, int] = field(default_factory=dict)
    traits: Mapping[str, Traits] = field(default_factory=dict)

    def state_of(self, view: NodeView) -> State:
        """Return the state that a node is in. Raises KeyError for one that the policy does not have."""
        return self.policy.states[view.story.state]

    def rule(self, path: str, name: str) -> str:
        """Return `file:line name` of a part of the policy, by its dotted path."""
        where = self.lines.get((f"LifecyclePolicy/{self.policy.name}", path), "")
        return f"{where} {name}".strip()
