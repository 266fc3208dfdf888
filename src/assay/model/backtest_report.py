"""What recorded history says about a plan: how long repairs took, and where a change would have acted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MedianDuration:
    """The median of `count` recorded durations."""

    hours: float
    count: int


@dataclass(frozen=True, slots=True)
class BacktestDifference:
    """A node that both revisions would have treated differently."""

    node: str
    """The name of the node."""
    acts: bool
    """Whether the new revision moves the node and the old one does not; false means the reverse."""
    still: bool
    """Whether the newest evidence says the same, so that merging acts at once."""
    because: str
    """The reason."""
    then: str
    """What the old revision says."""
    now: str
    """What the new revision says."""
    last_seen: str
    """When it was seen last: ISO 8601."""
    times: int = 1
    """How often it happened."""


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """What recorded history says about the change."""

    days: float
    """How many days of history were compared."""
    measurements: int = 0
    """How many measurements have a changed limit."""
    faults: int = 0
    """How many faults were compared."""
    unmapped: int = 0
    """How many measurements have a limit that could not be found."""
    found: tuple[BacktestDifference, ...] = ()
    """The nodes that both revisions would have treated differently."""


@dataclass(frozen=True, slots=True)
class PolicyReplayReport:
    """The ledger's faults of the last `days`, replayed under two policies.

    `note` says what the costs assume, or why nothing was replayed. Costs are by name, see `CostAssumptions`.
    """

    days: float
    faults: int
    """How many faults were replayed."""
    nodes: int
    """On how many nodes they were."""
    old_costs: Mapping[str, float] = field(default_factory=dict)
    """The costs under the old policy, by name; the name ends with the unit."""
    new_costs: Mapping[str, float] = field(default_factory=dict)
    """The costs under the new policy, by name."""
    note: str = ""
