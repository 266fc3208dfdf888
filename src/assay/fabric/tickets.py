"""From a comparison to work for a technician."""

from __future__ import annotations

from assay.fabric.compare import Comparison
from assay.fabric.discrepancy import Discrepancy
from assay.fabric.fold import unit
from assay.model.cable import Cable, End
from assay.model.entry import derived_id
from assay.model.ticket import Place, Ticket

TITLES = {
    "swap": "Exchanged cables",
    "moved": "Cable in the wrong port",
    "missing": "No link",
    "unexpected": "Cable that is not in the design",
    "degraded": "Slow link",
    "device-missing": "Device not in the fabric",
    "device-unknown": "Device that is not in the design",
    "device-replaced": "Device with a new GUID",
}


def tickets(comparison: Comparison) -> list[Ticket]:
    """Return one ticket per discrepancy; none at all from a partial discovery.

    The key says what is wrong and where, never when it was seen, so that the next scan finds the same ticket.
    """
    if comparison.verdict == "partial":
        return []
    return [ticket(comparison.design, one) for one in comparison.discrepancies]


def ticket(design: str, one: Discrepancy) -> Ticket:
    """Return the ticket of one discrepancy. It belongs to a node if that is the only one that it touches."""
    key = _key(design, one)
    return Ticket(
        id=derived_id("ticket", key),
        key=key,
        title=f"{TITLES[one.kind]}: {one.device or ' and '.join(_devices(one))}",
        node=one.nodes[0] if len(one.nodes) == 1 else "",
        places=_places(one),
        expected=_lines([pair.expected for pair in one.cables]) or "no cable",
        seen=f"{one.summary}\n{_lines([pair.observed for pair in one.cables]) or 'no link'}",
        verify=f"fabric scan {design}",
        severity="degraded",
    )


def _key(design: str, one: Discrepancy) -> str:
    ports = sorted(f"{end.guid}:{end.port}" for end in one.ends)
    what = [one.device] if one.kind == "device-missing" else ports
    return f"fabric/{design}/{one.kind}/{derived_id(*what)}"


def _devices(one: Discrepancy) -> list[str]:
    """Name the nodes' adapters where there are any, else every device."""
    ends = [end for end in one.ends if end.node] or one.ends
    return list(dict.fromkeys(end.device for end in ends))


def _places(one: Discrepancy) -> tuple[Place, ...]:
    """Return every end where hands may have to go; for a device that is gone, the device itself."""
    if one.kind != "device-missing":
        return tuple(_place(end) for end in one.ends)
    gone = next(end for end in one.ends if unit(end) == one.device)
    return (Place(one.device, gone.site, gone.rack, gone.u),)


def _place(end: End) -> Place:
    return Place(end.device, end.site, end.rack, end.u, str(end.port), end.label)


def _lines(cables: list[Cable | None]) -> str:
    return "\n".join(f"{cable.a} – {cable.b} at {cable.rate}" for cable in cables if cable)
