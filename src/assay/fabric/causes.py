"""Discrepancies that one cause explains are one piece of work: a transceiver, a rack without power, a bundle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from assay.fabric.discrepancy import Discrepancy
from assay.model.cable import End

RACK, BUNDLE = 3, 3
"""So many devices of a rack, so many swaps between the same devices, are no coincidence."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one ticket is about. `cause` names what the members have in common, "" where it is one discrepancy."""

    members: tuple[Discrepancy, ...]
    cause: str = ""
    title: str = ""
    likely: str = ""

    @property
    def first(self) -> Discrepancy:
        """The discrepancy, or the first of several."""
        return self.members[0]


def works(found: Iterable[Discrepancy]) -> list[Work]:
    """Return the pieces of work, in the order of the discrepancies that each begins with."""
    every = list(found)
    left, taken = every, list[Work]()
    for merge in (_racks, _cages, _off, _bundles):
        merged = list(merge(left))
        used = {id(one) for work in merged for one in work.members}
        left = [one for one in left if id(one) not in used]
        taken += merged
    order = {id(one): number for number, one in enumerate(every)}
    return sorted([*taken, *(Work((one,)) for one in left)], key=lambda work: order[id(work.first)])


def _racks(found: Sequence[Discrepancy]) -> Iterator[Work]:
    """Several devices of one rack are gone: it has no power."""
    for (site, rack), members in _grouped(found, "device-missing", _own_rack):
        if rack and len(members) >= RACK:
            names = ", ".join(one.device for one in members)
            yield Work(
                members, f"rack/{site}/{rack}", f"Rack {rack}: {len(members)} devices not in the fabric",
                f"{names} stand in rack {rack}: its power, or what they have in common there",
            )  # fmt: skip


def _cages(found: Sequence[Discrepancy]) -> Iterator[Work]:
    """All cables of a cage are out, or slow: it is the transceiver that they share."""
    for kind in ("missing", "degraded"):
        for (guid, cage), members in _grouped(found, kind, _own_cages):
            if len(members) > 1:
                end = next(end for one in members for end in one.ends if (guid, _cage(end)) == (guid, cage))
                name = f"{end.device} cage {cage}"
                yield Work(
                    members, f"cage/{guid}/{cage}", f"{'No link' if kind == 'missing' else 'Slow links'}: {name}",
                    f"both links of {name} are {'down' if kind == 'missing' else 'slow'}: the transceiver they share",
                )  # fmt: skip


def _off(found: Sequence[Discrepancy]) -> Iterator[Work]:
    """Several ports of one node or switch are disabled: somebody did that for one reason."""
    groups = list(_grouped(found, "disabled", lambda one: [(end.node or end.device,) for end in one.ends]))
    done: set[int] = set()
    for (unit,), members in sorted(groups, key=lambda group: -len(group[1])):
        new = tuple(one for one in members if id(one) not in done)
        if len(new) > 1:
            done |= {id(one) for one in new}
            yield Work(new, f"disabled/{unit}", f"Disabled: {len(new)} links of {unit}", "somebody disabled them")


def _bundles(found: Sequence[Discrepancy]) -> Iterator[Work]:
    """Several swaps between the same two devices: a bundle of cables went to the wrong one."""
    for devices, members in _grouped(found, "swap", _two_switches):
        if len(members) >= BUNDLE:
            names = " and ".join(devices)
            yield Work(
                members, f"bundle/{'/'.join(devices)}", f"Exchanged cables: {len(members)} pairs between {names}",
                f"a bundle of cables of {names} was exchanged",
            )  # fmt: skip


def _grouped(
    found: Sequence[Discrepancy], kind: str, keys: Callable[[Discrepancy], Iterable[tuple[str, ...]]]
) -> Iterator[tuple[tuple[str, ...], tuple[Discrepancy, ...]]]:
    groups: dict[tuple[str, ...], list[Discrepancy]] = {}
    for one in found:
        if one.kind == kind:
            for key in dict.fromkeys(keys(one)):
                groups.setdefault(key, []).append(one)
    yield from ((key, tuple(members)) for key, members in groups.items())


def _own_rack(one: Discrepancy) -> list[tuple[str, str]]:
    own = next((end for end in one.ends if one.device in (end.node, end.device)), None)
    return [(own.site, own.rack)] if own else []


def _own_cages(one: Discrepancy) -> list[tuple[str, str]]:
    return [(end.guid, _cage(end)) for end in one.ends if _cage(end)]


def _cage(end: End) -> str:
    """Return the cage of a label `17/1`, "" where the label names none."""
    cage, slash, _ = end.label.partition("/")
    return cage if slash and not end.node else ""


def _two_switches(one: Discrepancy) -> list[tuple[str, ...]]:
    """Return the switches between which cables were exchanged; nothing where it was on one switch."""
    names = sorted({end.device for end in one.ends if not end.node})
    return [tuple(names)] if len(names) in (2, 3) else []
