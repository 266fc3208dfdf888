"""Takes the links of all planes of a cable for one: a box with planes has one plug a cable, whatever its chips are.

Such links are down, slow or in other places together, and then the cause is looked for among cables, not among links.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from assay.fabric.comparison.cabling_repair import CablingRepair
from assay.fabric.comparison.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.comparison.shared_plugs import merge_lost_plugs, merge_moved_plugs
from assay.model.fabric.ports_and_cables import Cable, CableEnd

KINDS = ("missing", "degraded", "swap", "moved", "unexpected", "disabled")


class PlaneLinks:
    """The discrepancies of a comparison, in which a link of the first plane stands for those of the others.

    `cables`: the discrepancies, of each cable one. What stands for several links names boxes in place of their chips.
    """

    def __init__(self, found: Sequence[CablingDiscrepancy]) -> None:
        groups: dict[Hashable, list[CablingDiscrepancy]] = {}
        for one in found:
            groups.setdefault(find_cable(one), []).append(one)
        self.cables: list[CablingDiscrepancy] = []
        self._links: dict[int, list[CablingDiscrepancy]] = {}
        for links in groups.values():
            self.cables.append(_name_boxes(links[0]) if len(links) > 1 else links[0])
            self._links[id(self.cables[-1])] = links

    def unfold(self, repair: CablingRepair) -> CablingRepair:
        """Return a repair of cables with all of their links."""
        links = tuple(link for cable in repair.members for link in self._links[id(cable)])
        if len(repair.members) == 1 < len(links):
            repair = next(chain(merge_lost_plugs(links), merge_moved_plugs(links)), repair)
        return replace(repair, members=links)


def drop_other_planes(members: Iterable[CablingDiscrepancy]) -> list[CablingDiscrepancy]:
    """Return the discrepancies without the links of other planes of the same cables: what people are told once."""
    return list({find_cable(one): one for one in reversed(list(members))}.values())[::-1]


def find_cable(one: CablingDiscrepancy) -> Hashable:
    """Return what the links of all planes of the same cables have in common; itself for any other discrepancy."""
    if one.kind not in KINDS or one.box or not any(end.plane for end in one.ends):
        return id(one)
    return one.kind, tuple(map(find_plugs, one.cables))


def find_plugs(pair: CablePair) -> Hashable:
    """Return what the links of all planes of a cable, as designed and as seen, have in common: where its plugs are."""
    return _find_plugs(pair.expected), _find_plugs(pair.observed)


def _find_plugs(cable: Cable | None) -> frozenset[tuple[str, int]]:
    """Return the plugs of a cable. An adapter has one plug, and a port for each plane."""
    if cable is None or not any(end.plane for end in cable.ends):
        return frozenset((end.guid, end.port) for end in cable.ends) if cable else frozenset()
    return frozenset((end.box, end.port) if end.plane else (end.guid, 0) for end in cable.ends)


def _name_boxes(one: CablingDiscrepancy) -> CablingDiscrepancy:
    box_of = {end.guid: end.box for end in one.ends if end.plane}
    pairs = tuple(CablePair(_name_box(pair.expected), _name_box(pair.observed)) for pair in one.cables)
    switches = tuple(replace(switch, name=box_of.get(switch.guid, switch.name)) for switch in one.switches)
    return replace(one, cables=pairs, switches=switches)


def _name_box(cable: Cable | None) -> Cable | None:
    return replace(cable, a=_name_end(cable.a), b=_name_end(cable.b)) if cable else None


def _name_end(end: CableEnd) -> CableEnd:
    return replace(end, device=end.box) if end.plane else end
