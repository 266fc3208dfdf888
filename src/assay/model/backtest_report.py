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
    """One node that two revisions treat differently, for one reason.

    - `acts`: the new revision moves the node and the old one does not; False means the reverse.
    - `still_holds`: the node's newest evidence says the same, so merging the change acts at once.
    - `old_result`, `new_result`: what each revision says. `times`: how often this happened in the history.
    """

    node: str
    acts: bool
    still_holds: bool
    reason: str
    old_result: str
    new_result: str
    last_seen: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class BacktestReport:
    """The nodes that two revisions treat differently, and how much history was compared.

    `measurements` counts those with a changed limit; `unmapped` counts those whose limit could not be found.
    """

    days: float
    measurements: int = 0
    faults: int = 0
    unmapped: int = 0
    differences: tuple[BacktestDifference, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyCostPoint:
    """What a policy costs with one value of a setting. `revision` is "old", "new", or "" for a value in between."""

    value: float
    """The value of the setting."""
    revision: str
    costs: Mapping[str, float]
    """The costs, by name; the name ends with the unit."""


@dataclass(frozen=True, slots=True)
class PolicyCurve:
    """What each value of one changed setting costs, with nothing else changed. `path` is the setting's dotted path."""

    path: str
    points: tuple[PolicyCostPoint, ...]
    """What each value costs."""


@dataclass(frozen=True, slots=True)
class PolicyReplayReport:
    """The ledger's faults of the last `days`, replayed under two policies, and a curve for each changed number.

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
    curves: tuple[PolicyCurve, ...] = ()
    """A curve for each changed number."""
    note: str = ""
