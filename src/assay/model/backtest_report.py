"""What recorded history says about a plan: how long repairs took, where a change would have acted, what limits show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


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


LimitSide = Literal["at_least", "at_most", "equals"]


@dataclass(frozen=True, slots=True)
class LimitRecord:
    """The alarms of a limit, and how they ended.

    `failures`: of the parts that were measured. `alarms` are `right` if the part failed within 30 days, `wrong` if
    nothing followed, else nobody can tell (`unclear`). `foreseen`: the failures that alarms came before, `lead_days`
    the median of the time between, None for none.
    """

    failures: int
    alarms: int
    right: int
    wrong: int
    unclear: int
    foreseen: int
    lead_days: float | None


def describe_record(record: LimitRecord) -> str:
    """Return the record as part of a sentence."""
    lead = f" ({record.lead_days:.0f} d before)" if record.lead_days is not None else ""
    ends = f"nothing followed {record.wrong}, cannot tell of {record.unclear}"
    return f"foresees {record.foreseen} of {record.failures} failures{lead}, {record.alarms} alarms: {ends}"


@dataclass(frozen=True, slots=True)
class ObsoleteWarning:
    """An open warning of trends that says nothing more once a limit has changed, and why."""

    warning: str
    """The id of the warning."""
    node: str
    """Its node."""
    place: str
    """The part."""
    name: str
    """The measurement."""
    reason: str
    """Why it says nothing more."""


@dataclass(frozen=True, slots=True)
class LimitTrial:
    """A changed limit of a measurement of a check: what the old and the new value show in history.

    `new_value` is None where the limit is removed. A record is None where the value is in another unit than what was
    measured.
    """

    limit: str
    """The limit."""
    specs: tuple[str, ...]
    """The specs that have it."""
    check: str
    """The check that compares with it."""
    measurement: str
    """The measurement."""
    unit: str
    """The unit of both values."""
    side: LimitSide
    """Whether values must be at least, at most or equal to it."""
    old_value: float
    """The old value."""
    new_value: float | None
    old: LimitRecord | None
    """What the old value shows; null if it is in another unit than what was measured."""
    new: LimitRecord | None
    """What the new value shows; null if there is none, or it is in another unit."""
    obsolete: tuple[ObsoleteWarning, ...] = ()
    """The open warnings that say nothing more after the change."""
