"""Many cables, one cause: a dead switch or node is one thing to repair, not sixty-four."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from assay.fabric.design import Plan
from assay.fabric.discovery import Discovery
from assay.fabric.discrepancy import Discrepancy, Kind, Pair
from assay.model.cable import Cable, End

Cause = tuple[Kind, str, str]
"""A kind, what names the device (its name, or the GUID of one that is not designed), and whose place it took."""


def fold(found: list[Discrepancy], plan: Plan, discovery: Discovery) -> list[Discrepancy]:
    """Replace discrepancies that one device explains by that device; the rest stays, in order."""
    dead = _dead(plan, [one for one in found if one.kind == "missing"])

    def cause(one: Discrepancy) -> Cause | None:
        if one.kind == "missing":
            return ("device-missing", dead[_ports(one)], "") if _ports(one) in dead else None
        return _newcomer(one, plan, discovery)

    grouped: dict[Cause | int, list[Discrepancy]] = defaultdict(list)
    for index, one in enumerate(found):
        grouped[cause(one) or index].append(one)
    return [
        group[0] if isinstance(key, int) else NAMED[key[0]](key[1], tuple(pair for one in group for pair in one.cables))
        for key, group in grouped.items()
    ]


def _ports(one: Discrepancy) -> frozenset[object]:
    return frozenset(end.at for end in one.ends)


def unit(end: End) -> str:
    """Return what fails as one thing: the node for its adapters, else the device."""
    return end.node or end.device


def _dead(plan: Plan, missing: list[Discrepancy]) -> dict[frozenset[object], str]:
    """Say for each missing cable which dead device explains it, largest first. One cable alone explains nothing."""
    designed = _by_unit(plan.cables)
    gone = {_ports(one) for one in missing}
    explained: dict[frozenset[object], str] = {}
    suspects = {unit(end) for one in missing for end in one.ends}
    for name in sorted(suspects, key=lambda name: (-len(designed[name]), name)):
        new = [ports for ports in designed[name] if ports not in explained]
        if len(new) > 1 and all(ports in gone for ports in designed[name]):
            explained |= dict.fromkeys(new, name)
    return explained


def _by_unit(cables: Sequence[Cable]) -> Mapping[str, list[frozenset[object]]]:
    by_unit: dict[str, list[frozenset[object]]] = defaultdict(list)
    for cable in cables:
        for name in {unit(end) for end in cable.ends}:
            by_unit[name].append(frozenset(end.at for end in cable.ends))
    return by_unit


def _newcomer(one: Discrepancy, plan: Plan, discovery: Discovery) -> Cause | None:
    """Recognise a device that the design does not know: in the place of one that is gone, or simply added."""
    expected, observed = one.cables[0].expected, one.cables[0].observed
    if len(one.cables) != 1 or observed is None:
        return None
    strangers = [end for end in observed.ends if end.guid not in plan.devices]
    if len(strangers) != 1:
        return None
    if expected is None:
        return "device-unknown", strangers[0].guid, ""
    gone = _left_out(expected, observed)
    same_place = gone.guid not in discovery.devices and gone.port == strangers[0].port
    return ("device-replaced", strangers[0].guid, gone.guid) if same_place else None


def _left_out(expected: Cable, observed: Cable) -> End:
    """Return the end of a designed cable that the seen one does not have."""
    return next(end for end in expected.ends if end.at not in (observed.a.at, observed.b.at))


def _missing_device(name: str, pairs: tuple[Pair, ...]) -> Discrepancy:
    place = next(end for pair in pairs if pair.expected for end in pair.expected.ends if unit(end) == name)
    where = f" ({place.rack} U{place.u})" if place.rack else ""
    return Discrepancy(
        "device-missing", pairs, f"{name}{where} is not in the fabric: all of its cables are without link",
        (f"look whether {name} has power and runs, before touching a cable",), name,
    )  # fmt: skip


def _replaced_device(guid: str, pairs: tuple[Pair, ...]) -> Discrepancy:
    pair = pairs[0]
    assert pair.expected is not None, "a replacement was designed"
    assert pair.observed is not None, "a replacement is seen"
    gone = _left_out(pair.expected, pair.observed)
    return Discrepancy(
        "device-replaced", pairs, f"in the place of {gone} ({gone.guid}) is a device with the GUID {guid}",
        (f"if {gone.device} was replaced on purpose, write {guid} in its place",), gone.device,
    )  # fmt: skip


def _unknown_device(guid: str, pairs: tuple[Pair, ...]) -> Discrepancy:
    observed = [pair.observed for pair in pairs if pair.observed]
    name = next(end.device for end in observed[0].ends if end.guid == guid)
    at = ", ".join(str(end) for cable in observed for end in cable.ends if end.guid != guid)
    return Discrepancy(
        "device-unknown", pairs, f"{name} ({guid}) is not in the design; it is cabled to {at}",
        ("add it to the design, or take its cables out",), name,
    )  # fmt: skip


NAMED: dict[Kind, Callable[[str, tuple[Pair, ...]], Discrepancy]] = {
    "device-missing": _missing_device,
    "device-replaced": _replaced_device,
    "device-unknown": _unknown_device,
}
