"""Climbs the ladder of remedies, by what has been tried for a fault's part in each of the policy's windows of time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from assay.decide.state.node_state import NodeState, is_before
from assay.model.faults.fault_record import FaultRecord
from assay.model.specs.repeated_faults import LadderRung, LadderWindow, RemedyLadder
from assay.model.timestamps import hours, parse_time

LADDER_RESETS = frozenset({"certified", "replaced"})
"""After these the ladder starts again: a person certified the node, or another part is in its place."""


class _Try(NamedTuple):
    """An earlier move by the ladder: when, by which remedy, and for which parts; no parts if none is known."""

    at: datetime
    remedy: str
    parts: frozenset[str]


def find_rung(
    ladder: RemedyLadder, node_state: NodeState, fault: FaultRecord, remedy: str, now: datetime
) -> tuple[str, LadderRung] | None:
    """Return the first rung from `remedy` upwards that is not used up for a fault; None if `remedy` is no rung.

    Only tries for the fault's own part count, unless a window of the policy counts those of the whole node. The last
    rung is never used up. Moves before the ladder's last reset do not count.
    """
    rungs = {str(name): rung for name, rung in ladder.rungs.items()}
    tries = list(_list_tries(node_state))
    while rung := rungs.get(remedy):
        if rung.then is None or not _is_used_up(ladder, fault, remedy, rung, tries, now):
            return remedy, rung
        remedy = rung.then
    return None


def is_at_or_above(ladder: RemedyLadder, remedy: str, start: str) -> bool:
    """Whether the ladder leads from the rung `start` to `remedy`, or they are the same."""
    rungs = {str(name): rung for name, rung in ladder.rungs.items()}
    current: str | None = start
    while current is not None and current != remedy:
        current = rungs[current].then if current in rungs else None
    return current == remedy


def has_recurred(ladder: RemedyLadder, node_state: NodeState, fault: FaultRecord, now: datetime) -> bool:
    """Whether a fault of this class was repaired on this part, within the part's longest window, and came back."""
    windows = [one.hours for one in ladder.windows if one.of == "part" and _bounds(one, fault)]
    start = max(now - hours(max([ladder.window_hours, *windows])), find_last_reset(node_state))
    repairs = [one for one in node_state.repairs if one.kind not in LADDER_RESETS and parse_time(one.at) > start]
    key = (fault.fault_class, fault.subject)
    earlier = [one for one in node_state.faults if (one.fault_class, one.subject) == key and one.id != fault.id]
    return any(is_before(one, repair) and not is_before(fault, repair) for one in earlier for repair in repairs)


def find_last_reset(node_state: NodeState) -> datetime:
    """Return when the ladder last started again; the earliest time there is if it never did."""
    return parse_time(max((repair.at for repair in node_state.repairs if repair.kind in LADDER_RESETS), default=""))


def _list_tries(node_state: NodeState) -> Iterator[_Try]:
    """Yield the moves by a rung since the ladder's last reset."""
    since, parts = find_last_reset(node_state), {fault.id: fault.subject for fault in node_state.faults}
    for move in node_state.transitions:
        if move.remedy and (at := parse_time(move.at)) > since:
            yield _Try(at, move.remedy, frozenset(parts[ident] for ident in move.faults if ident in parts))


def _is_used_up(
    ladder: RemedyLadder, fault: FaultRecord, remedy: str, rung: LadderRung, tries: list[_Try], now: datetime
) -> bool:
    of_part = [one for one in tries if fault.subject in one.parts or not one.parts]
    if sum(one.remedy == remedy and one.at > now - hours(ladder.window_hours) for one in of_part) >= rung.times:
        return True
    return any(
        _count_tries(window, remedy, of_part if window.of == "part" else tries, now) >= window.times
        for window in ladder.windows
        if (not window.remedies or remedy in window.remedies) and _bounds(window, fault)
    )


def _count_tries(window: LadderWindow, remedy: str, tries: list[_Try], now: datetime) -> int:
    """Return how many tries a window counts: of all its remedies together, or of one remedy if it names none."""
    counted = window.remedies or (remedy,)
    return sum(one.remedy in counted and one.at > now - hours(window.hours) for one in tries)


def _bounds(window: LadderWindow, fault: FaultRecord) -> bool:
    return window.matches(fault.fault_class, fault.severity, fault.blame)
