"""What a change of the policy costs on recorded faults, and where its numbers lie on the curve of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PolicyCostPoint:
    """What a policy costs with one value of a setting. `revision` is "old", "new", or "" for a value in between."""

    value: float
    revision: str
    costs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PolicyCurve:
    """What each value of one changed setting costs, with nothing else changed. `path` is the setting's dotted path."""

    path: str
    points: tuple[PolicyCostPoint, ...]


@dataclass(frozen=True, slots=True)
class PolicyReplayReport:
    """The ledger's faults of the last `days`, replayed under two policies, and a curve for each changed number.

    `note` says what the costs assume, or why nothing was replayed. Costs are by name, see `CostAssumptions`.
    """

    days: float
    faults: int
    nodes: int
    old_costs: Mapping[str, float] = field(default_factory=dict)
    new_costs: Mapping[str, float] = field(default_factory=dict)
    curves: tuple[PolicyCurve, ...] = ()
    note: str = ""
