"""What stored history says: how long things took, and on whom a change would have acted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MedianDuration:
    """How long something took: the median of `count` times."""

    hours: float
    count: int


@dataclass(frozen=True, slots=True)
class BacktestDifference:
    """One node on which two revisions differ, for one reason. `then` is what the old one says to it, `now` the new one.

    `acts`: the new revision moves the node and the old one does not; otherwise it is the reverse. `still`: what is
    known last of the node says so too, so that merging acts at the next look. `times`: how often in the history.
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
    """The nodes that are seen otherwise, and how much history that rests on.

    `measurements` were held to a limit that changed; of `unmapped` ones nobody could say to which limit they were.
    """

    days: float
    measurements: int = 0
    faults: int = 0
    unmapped: int = 0
    differences: tuple[BacktestDifference, ...] = ()
