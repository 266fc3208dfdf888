"""Switches that answer and lost most of their cables: one fault of the switch, not one for each plug.

The same holds for a part of a box with several chips: a card, a plane, or the whole box. A cable that could belong to
the faults of two switches belongs to that of which the greater share is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from assay.fabric.compare.discrepancy import BoxPart, CablingDiscrepancy
from assay.fabric.compare.repair import MIN_LOST_UPLINKS, CablingRepair
from assay.fabric.compare.shared_plugs import LOST_KINDS, LOST_TITLES, LOST_WORDS, find_shared_plug

MIN_SWITCH_CABLES = 4
MIN_PLUGS = 4
"""Our own choice: fewer cables, or plugs, of a switch may well be lost independently."""
LOST = {"missing": "have no link", "degraded": "are slow", "": "are down or slow"}


@dataclass
class _Suspect:
    """A switch, or a part of a box: its designed cables, and those that it lost. A leaf has `trunks` to switches.

    `hit` are the names of the chips of a part that are dead, or lost half of their cables.
    """

    key: str
    name: str
    cables: int
    trunks: int = 0
    nodes: int = 0
    chips: int = 1
    lost: list[CablingDiscrepancy] = field(default_factory=list)
    hit: set[str] = field(default_factory=set)

    @property
    def lost_cables(self) -> int:
        """Return the number of lost cables."""
        return sum(len(link.cables) for link in self.lost)

    @property
    def share(self) -> float:
        """Return the share of its cables that is lost, or of those to other switches if that is more."""
        trunks = sum(not link.nodes for link in self.lost) / self.trunks if self.trunks else 0
        return max(self.lost_cables / self.cables, trunks)

    @property
    def is_at_fault(self) -> bool:
        """Return whether it lost so much that it is the cause. If nothing of it answers, it is dead: another cause."""
        enough = self.lost_cables >= MIN_SWITCH_CABLES and self.share >= MIN_LOST_UPLINKS
        is_some_lost = any(link.kind in LOST_KINDS for link in self.lost)
        return (enough or self.is_starved) and is_some_lost and self._are_chips_hit

    @property
    def is_starved(self) -> bool:
        """Return whether a leaf lost half of its cables to several switches: its nodes lose them together."""
        gone = [link for link in self.lost if link.kind == "missing" and not link.nodes]
        ends = {frozenset(end.guid for end in link.ends) for link in gone}
        return len(ends) > 1 and len(gone) >= MIN_LOST_UPLINKS * self.trunks > 0

    @property
    def _are_chips_hit(self) -> bool:
        return self.chips == 1 or 2 * len(self.hit) >= max(self.chips, 3)


def merge_lost_switches(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Half of the cables of a switch, or of a part of a box, or of a leaf's cables to other switches, or more."""
    suspects = _find_suspects(discrepancies)
    switches = [suspect for suspect in suspects if suspect.chips == 1]
    groups = Counter(tuple(map(id, switch.lost)) for switch in switches)
    done: set[int] = set()
    for switch in switches:  # all cables between two switches that lost no others: the fault is between them
        links = tuple(map(id, switch.lost))
        if groups[links] == 2 and switch.lost[0].bundle == len(links) > 1:
            done.update(links)
    for suspect in sorted(suspects, key=lambda each: (each.chips == 1, -each.share, -each.chips, -each.lost_cables)):
        suspect.lost = [link for link in suspect.lost if id(link) not in done]
        if suspect.is_at_fault:
            done |= set(map(id, suspect.lost))
            yield _report(suspect)


def _find_suspects(discrepancies: Sequence[CablingDiscrepancy]) -> list[_Suspect]:
    switches: dict[str, _Suspect] = {}
    parts: dict[BoxPart, _Suspect] = {}
    parts_of: dict[str, tuple[BoxPart, ...]] = {}
    for discrepancy in discrepancies:
        is_dead_chip = discrepancy.kind == "device-missing" and bool(discrepancy.box)
        near = [
            each
            for each in discrepancy.switches
            if discrepancy.kind in LOST_KINDS or (is_dead_chip and each.name == discrepancy.device)
        ]
        for part in dict.fromkeys(part for switch in near for part in switch.parts):
            name = f"plane {part.name}" if part.kind == "plane" else part.name
            suspect = _Suspect(f"{part.kind}/{part.name}", name, part.cables, chips=part.chips)
            suspect = parts.setdefault(part, suspect)
            suspect.lost.append(discrepancy)
            suspect.hit |= {discrepancy.device} if is_dead_chip else set()
        for switch in near if not is_dead_chip else ():
            trunks = switch.trunks if switch.nodes else 0
            suspect = _Suspect(f"switch/{switch.guid}", switch.name, switch.cables, trunks, len(switch.nodes))
            switches.setdefault(switch.name, suspect).lost.append(discrepancy)
            parts_of[switch.name] = switch.parts
    for name, suspect in switches.items():
        for part in parts_of[name] if suspect.is_at_fault else ():
            parts[part].hit.add(name)
    return [*parts.values(), *switches.values()]


def _report(suspect: _Suspect) -> CablingRepair:
    kind = find_common_kind(suspect.lost)
    many, name = suspect.lost_cables, suspect.name
    if suspect.chips > 1:
        cause = f"{many} of the {suspect.cables} cables of {name} {LOST[kind]}: what its chips have in common"
    else:
        cause = f"{name} answers, but {many} of its {suspect.cables} cables {LOST[kind]}"
        cause += f", and {suspect.nodes} nodes are below it" if suspect.nodes else ""
        cause += ": a bundle, a panel, or the switch"
    return CablingRepair(tuple(suspect.lost), suspect.key, f"{LOST_TITLES[kind]}: {many} cables of {name}", cause)


def find_common_kind(discrepancies: Sequence[CablingDiscrepancy]) -> str:
    """Return "missing" or "degraded" if all of them are, "" if some cables are down and others slow."""
    kinds = {discrepancy.kind for discrepancy in discrepancies} - {"device-missing"}
    return kinds.pop() if len(kinds) == 1 else ""


def merge_many_plugs(discrepancies: Sequence[CablingDiscrepancy]) -> Iterator[CablingRepair]:
    """Several plugs of one switch or box that other links share: what these plugs have in common there."""
    links_of: dict[str, dict[str, list[CablingDiscrepancy]]] = {}
    names: dict[str, str] = {}
    for link in (each for each in discrepancies if each.kind in LOST_KINDS and not each.box):
        for end in (end for end in link.ends if not end.node):
            if shared := find_shared_plug(end):
                names[shared.plug.owner] = end.box if end.plane else end.device
                links_of.setdefault(shared.plug.owner, {}).setdefault(shared.plug.label, []).append(link)
    done: set[int] = set()
    for owner, plugs in sorted(links_of.items(), key=lambda item: -len(item[1])):
        left = {label: links for label, links in plugs.items() if not done & set(map(id, links))}
        members = list({id(link): link for links in left.values() for link in links}.values())
        if len(left) >= MIN_PLUGS:
            done |= set(map(id, members))
            kind = find_common_kind(members)
            yield CablingRepair(
                tuple(members),
                f"plugs/{owner}",
                f"{LOST_TITLES[kind]}: {len(left)} plugs of {names[owner]}",
                f"{names[owner]} answers, but {len(members)} links in {len(left)} of its plugs are {LOST_WORDS[kind]}:"
                " a bundle, a panel, or the switch",
            )
