"""Tells what breaks the pattern of a fabric, for the people who review its design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from assay.fabric.compare.cabling_repair import CablingRepair
from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.lost_switches import MIN_SWITCH_CABLES
from assay.fabric.compare.shared_plugs import LOST_KINDS, MOVED_TITLES
from assay.fabric.learn.judged_design import JudgedDesign
from assay.model.specs.fabric.ports_and_cables import Cable, CableEnd

CABLE_KINDS = {"swap", "moved", "missing"}


class _Shift(NamedTuple):
    """A node in another port of the right leaf: the port of the pattern, and the one where it is."""

    node: str
    designed: int
    seen: int


def describe_exceptions(judged: JudgedDesign) -> Iterator[str]:
    """Yield a line for each exception.

    All adapters of a node that are in another port in the same way have one line; so have many cables that are down or
    slow for one reason, such as all of a leaf, and the links of all planes of a cable that is in another place.
    """
    exceptions = judged.exceptions
    repairs = [repair for kinds in (LOST_KINDS, MOVED_TITLES, ("device-missing",))
               for repair in group_by_common_cause(one for one in exceptions if one.kind in kinds)]  # fmt: skip
    together = {id(one): repair for repair in repairs if _is_told_at_once(repair) for one in repair.members}
    found = [(one, _find_shift(one)) for one in exceptions]
    left = Counter(shift for _, shift in found if shift)
    for one, shift in found:
        if repair := together.get(id(one)):
            if repair.first is one:
                yield _describe_repair(repair)
        elif shift is None:
            yield f"{one.kind}: {one.summary}{_describe_others(judged, one)}"
        elif left[shift] == 1:
            yield f"{one.kind}: {one.summary}"
        elif many := left.pop(shift, 0):
            where = f"port {shift.seen} instead of port {shift.designed} of {many} leaves"
            yield f"moved: {shift.node} is in {where}, out of the order of the names: is that intended?"


def _is_told_at_once(repair: CablingRepair) -> bool:
    """Return whether the members of a repair are one line: a bundle, a box, the planes of a cable, many lost cables."""
    if len(repair.members) == 1:
        return False
    many = repair.first.kind in LOST_KINDS and len(repair.members) >= MIN_SWITCH_CABLES
    in_boxes = all(one.box or any(end.plane for end in one.ends) for one in repair.members)
    return many or in_boxes or repair.cause.startswith(("bundle/", "trunk/"))


def _describe_repair(repair: CablingRepair) -> str:
    """Return a line for what has one reason: with the first cable in another place, and the rates of slow ones."""
    if repair.first.kind in MOVED_TITLES:
        return f"{repair.first.kind}: {repair.title}: {repair.first.summary}"
    pairs = [pair for one in repair.members for pair in one.cables]
    rates = {(pair.observed.rate, pair.expected.rate) for pair in pairs if pair.observed and pair.expected}
    slow = ", ".join(f"at {seen} instead of {designed}" for seen, designed in sorted(rates))
    return f"{repair.first.kind}: {repair.title}{f' {slow}' if slow else ''}: {repair.likely_cause}"


def _find_shift(one: CablingDiscrepancy) -> _Shift | None:
    """Return how an adapter is in another port of the leaf of the pattern, None if it is not, or on another one."""
    if one.kind != "moved" or len(one.cables) != 1:
        return None
    expected, observed = one.cables[0].expected, one.cables[0].observed
    if expected is None or observed is None:
        return None
    (adapter, leaf), (seen_adapter, seen_leaf) = _sort_ends(expected), _sort_ends(observed)
    if not adapter.node or (adapter.guid, leaf.guid) != (seen_adapter.guid, seen_leaf.guid):
        return None
    return _Shift(adapter.node, leaf.port, seen_leaf.port)


def _sort_ends(cable: Cable) -> list[CableEnd]:
    """Return the end at a node before the one at a switch."""
    return sorted(cable.ends, key=lambda end: not end.node)


def _describe_others(judged: JudgedDesign, one: CablingDiscrepancy) -> str:
    """Return how many nodes have the adapter on the leaf where this one lacks it."""
    expected = next((pair.expected for pair in one.cables if pair.expected), None)
    if expected is None or one.kind not in CABLE_KINDS:
        return ""
    adapter, switch = _sort_ends(expected)
    if not adapter.node or switch.node:
        return ""
    slot = adapter.device.partition(" ")[2]
    wrong = {end.node for other in judged.exceptions if other.kind in CABLE_KINDS for pair in other.cables
             if pair.expected and switch.guid in (pair.expected.a.guid, pair.expected.b.guid)
             for end in pair.expected.ends}  # fmt: skip
    others = [row for row in judged.topology.rows[switch.guid[2:]]
              if (device := judged.topology.devices[f"0x{row[1]}"]).node and device.node not in wrong]  # fmt: skip
    return f" ({len(others)} nodes here have {slot or 'this rail'} on {switch.device}, this one has not)"
