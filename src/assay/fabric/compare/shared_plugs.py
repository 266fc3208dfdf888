"""Groups the discrepancies of one plug into one repair: a technician pulls a plug, not a link.

Links share a plug in the cage of a twin-port or split transceiver (`17/1` and `17/2`), at a node whose ports are
labelled so, and on the chips of a box with planes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import NamedTuple

from assay.fabric.compare.discrepancy import CablePair, CablingDiscrepancy, DiscrepancyKind
from assay.fabric.compare.repair import CablingRepair
from assay.model.specs.fabric.cable import Cable, CableEnd

LOST_KINDS = ("missing", "degraded")
CABLE_KINDS = (*LOST_KINDS, "swap", "moved", "unexpected", "disabled")
LOST_TITLES = {"missing": "No link", "degraded": "Slow links", "": "Bad links"}
LOST_WORDS = {"missing": "down", "degraded": "slow", "": "down or slow"}
MOVED_TITLES: dict[DiscrepancyKind, str] = {"swap": "Exchanged plugs", "moved": "Plug in the wrong place"}

MAX_OTHER_ENDS = 4
"""A title names so many nodes and switches at the other ends of a plug's links."""


class Plug(NamedTuple):
    """A plug that several links share: what it is in (a GUID, a box or a node), and its label there."""

    owner: str
    label: str


class SharedPlug(NamedTuple):
    """A plug, the link's place in it, and the plug's name for people."""

    plug: Plug
    place: tuple[str, int]
    name: str


def find_shared_plug(end: CableEnd) -> SharedPlug | None:
    """Return the plug that an end shares with other links, None where each link has a plug of its own."""
    cage, slash, place = end.label.partition("/")
    if not slash and not end.plane:
        return None
    owner = end.node or (end.box if end.plane else end.guid)
    shown = end.node or (end.box if end.plane else end.device)
    label = cage if slash else str(end.port)
    return SharedPlug(Plug(owner, label), (place, end.plane), f"{shown} {'cage' if slash else 'port'} {label}")


def merge_lost_plugs(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several links of one plug are down or slow: the transceiver that they share. Plugs with most links come first."""
    members: dict[Plug, list[CablingDiscrepancy]] = {}
    names: dict[Plug, str] = {}
    for link in discrepancies:
        if link.kind in LOST_KINDS and not link.box:
            for shared in filter(None, map(find_shared_plug, link.ends)):
                if link not in members.setdefault(shared.plug, []):
                    members[shared.plug].append(link)
                names[shared.plug] = shared.name
    done: set[int] = set()
    for plug, links in sorted(members.items(), key=lambda item: -len(item[1])):
        left = [link for link in links if id(link) not in done]
        if len(left) > 1:
            done |= set(map(id, left))
            yield _report_lost(plug, names[plug], left)


def _report_lost(plug: Plug, name: str, links: Sequence[CablingDiscrepancy]) -> CablingRepair:
    kinds = {link.kind for link in links}
    kind = next(iter(kinds)) if len(kinds) == 1 else ""
    others = _list_other_ends(plug, links)
    both = f"{name} and {others[0]}" if len(others) == 1 else f"{name} to {', '.join(others)}"
    return CablingRepair(
        tuple(links),
        f"cage/{plug.owner}/{plug.label}",
        f"{LOST_TITLES[kind]}: {both if len(others) <= MAX_OTHER_ENDS else name}",
        f"{len(links)} links of {name} are {LOST_WORDS[kind]}: the transceiver they share",
    )


def _list_other_ends(plug: Plug, links: Sequence[CablingDiscrepancy]) -> list[str]:
    """Return where the other ends of a plug's links are: one plug that they share, else nodes and switches."""
    ends = [end for link in links for end in link.ends if (here := find_shared_plug(end)) is None or here.plug != plug]
    plugs = {shared.name if shared else "" for shared in map(find_shared_plug, ends)}
    units = dict.fromkeys(end.node or (end.box if end.plane else end.device) for end in ends)
    return list(plugs if len(plugs) == 1 and "" not in plugs else units)


def merge_moved_plugs(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several links changed places between two plugs, each in its own place there: somebody moved the plugs."""
    for kind, title in MOVED_TITLES.items():
        members: dict[tuple[Plug, Plug], list[CablingDiscrepancy]] = {}
        names: dict[Plug, str] = {}
        for link in (each for each in discrepancies if each.kind == kind):
            shared = sorted(filter(None, map(find_shared_plug, link.ends)))
            names |= {each.plug: each.name for each in shared}
            # The link has the same place in both plugs. Plugs of one device come first.
            pairs = {(a.plug, b.plug) for a, b in combinations(shared, 2) if a.plug != b.plug and a.place == b.place}
            for pair in sorted(pairs, key=lambda pair: (pair[0].owner != pair[1].owner, pair)):
                members.setdefault(pair, []).append(link)
        for (a, b), links in sorted(members.items(), key=lambda item: item[0][0].owner != item[0][1].owner):
            if len(links) > 1:
                both = f"{names[a]} and {names[b]}"
                yield CablingRepair(
                    tuple(links),
                    f"plugs/{kind}/{a.owner}/{a.label}/{b.owner}/{b.label}",
                    f"{title}: {both}",
                    f"{len(links)} links of {both} changed places together, as the links of one plug do",
                )


class PlaneLinks:
    """The discrepancies of a comparison, in which a link of the first plane stands for those of the others.

    Links of all planes are down, slow or elsewhere together: then the cause is looked for among cables.
    `cables`: the discrepancies, of each cable one. What stands for several links names boxes in place of their chips.
    """

    def __init__(self, discrepancies: Sequence[CablingDiscrepancy]) -> None:
        groups: dict[Hashable, list[CablingDiscrepancy]] = {}
        for discrepancy in discrepancies:
            groups.setdefault(find_cable(discrepancy), []).append(discrepancy)
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
    return list({find_cable(member): member for member in reversed(list(members))}.values())[::-1]


def find_cable(discrepancy: CablingDiscrepancy) -> Hashable:
    """Return what the links of all planes of the same cables have in common; itself for any other discrepancy."""
    if discrepancy.kind not in CABLE_KINDS or discrepancy.box or not any(end.plane for end in discrepancy.ends):
        return id(discrepancy)
    return discrepancy.kind, frozenset(map(find_plugs, discrepancy.cables))


def find_plugs(pair: CablePair) -> Hashable:
    """Return what the links of all planes of a cable, as designed and as seen, have in common: where its plugs are."""
    return _find_plugs(pair.expected), _find_plugs(pair.observed)


def _find_plugs(cable: Cable | None) -> frozenset[tuple[str, int]]:
    """Return the plugs of a cable. An adapter has one plug, and a port for each plane."""
    if cable is None or not any(end.plane for end in cable.ends):
        return frozenset((end.guid, end.port) for end in cable.ends) if cable else frozenset()
    return frozenset((end.box, end.port) if end.plane else (end.guid, 0) for end in cable.ends)


def _name_boxes(discrepancy: CablingDiscrepancy) -> CablingDiscrepancy:
    box_of = {end.guid: end.box for end in discrepancy.ends if end.plane}
    pairs = tuple(CablePair(_name_box(pair.expected), _name_box(pair.observed)) for pair in discrepancy.cables)
    switches = tuple(replace(switch, name=box_of.get(switch.guid, switch.name)) for switch in discrepancy.switches)
    return replace(discrepancy, cables=pairs, switches=switches)


def _name_box(cable: Cable | None) -> Cable | None:
    return replace(cable, a=_name_end(cable.a), b=_name_end(cable.b)) if cable else None


def _name_end(end: CableEnd) -> CableEnd:
    return replace(end, device=end.box) if end.plane else end
