"""From a comparison to work for a technician."""

from __future__ import annotations

from assay.fabric.causes import Work, works
from assay.fabric.compare import Comparison
from assay.fabric.discrepancy import Discrepancy
from assay.fabric.fold import unit
from assay.fabric.orders import cause, steps
from assay.model.cable import Cable, End
from assay.model.entry import derived_id
from assay.model.ticket import Place, Ticket

TITLES = {
    "swap": "Exchanged cables",
    "moved": "Cable in the wrong port",
    "missing": "No link",
    "disabled": "Disabled port",
    "unexpected": "Cable that is not in the design",
    "degraded": "Slow link",
    "device-missing": "Device not in the fabric",
    "device-unknown": "Device that is not in the design",
    "device-replaced": "Device with a new GUID",
    "device-exchanged": "Devices in each other's place",
}


def tickets(comparison: Comparison) -> list[Ticket]:
    """Return one ticket per discrepancy, or per cause of several; none at all from a partial discovery.

    The key says what is wrong and where, never when it was seen, so that the next scan finds the same ticket.
    """
    if comparison.verdict == "partial":
        return []
    return [_ticket(comparison.design, work) for work in works(comparison.discrepancies)]


def ticket(design: str, one: Discrepancy) -> Ticket:
    """Return the ticket of one discrepancy. It belongs to a node if that is the only one that it touches."""
    return _ticket(design, Work((one,)))


def _ticket(design: str, work: Work) -> Ticket:
    key = _key(design, work)
    members = work.members
    nodes = {node for one in members for node in one.nodes}
    pairs = [pair for one in members for pair in one.cables]
    beside = _beside(work)
    said = "\n".join(one.summary for one in members)
    return Ticket(
        id=derived_id("ticket", key),
        key=key,
        title=work.title or _title(work.first),
        node=next(iter(nodes)) if len(nodes) == 1 else "",
        places=tuple(dict.fromkeys(place for one in members for place in _places(one))),
        expected=_lines([pair.expected for pair in pairs]) or "no cable",
        seen=f"{said}\n{_lines([pair.observed for pair in pairs]) or 'no link'}",
        verify=f"fabric scan {design}",
        severity="degraded",
        cause=work.likely or cause(work.first),
        steps="\n".join(steps(members, design, beside)),
        beside="\n".join(beside),
    )


def _title(one: Discrepancy) -> str:
    return f"{TITLES[one.kind]}: {one.device or ' and '.join(_devices(one))}"


def _key(design: str, work: Work) -> str:
    if work.cause:
        return f"fabric/{design}/{work.cause}"
    one = work.first
    ports = sorted(f"{end.guid}:{end.port}" for end in one.ends)
    what = [one.device] if one.kind in ("device-missing", "device-exchanged") else ports
    return f"fabric/{design}/{one.kind}/{derived_id(*what)}"


def _devices(one: Discrepancy) -> list[str]:
    """Name the nodes' adapters where there are any, else every device."""
    ends = [end for end in one.ends if end.node] or one.ends
    return list(dict.fromkeys(end.device for end in ends))


def _beside(work: Work) -> list[str]:
    """Return which links go down with the plugs that are pulled, those that the work is about left out."""
    about = {str(end) for one in work.members for end in one.ends}
    said = (line for one in work.members for line in one.beside if line.partition(": ")[0] not in about)
    return list(dict.fromkeys(said))


def _places(one: Discrepancy) -> tuple[Place, ...]:
    """Return every end where hands may have to go; for a whole device, the device itself."""
    if one.kind == "device-missing":
        gone = next(end for end in one.ends if unit(end) == one.device)
        return (Place(one.device, gone.site, gone.rack, gone.u),)
    if one.kind == "device-exchanged":
        names = one.device.split(" and ")
        own = {unit(end): end for end in one.ends if unit(end) in names}
        return tuple(Place(name, own[name].site, own[name].rack, own[name].u) for name in names if name in own)
    return tuple(_place(end) for end in one.ends)


def _place(end: End) -> Place:
    return Place(end.device, end.site, end.rack, end.u, str(end.port), end.label)


def _lines(cables: list[Cable | None]) -> str:
    return "\n".join(f"{cable.a} – {cable.b} at {cable.rate}" for cable in cables if cable)
