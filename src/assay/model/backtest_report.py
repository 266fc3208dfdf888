"""How long repairs took, and on which nodes a change would have acted: what recorded history says about a plan."""

from __future__ import annotations

from dataclasses import dataclass


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
