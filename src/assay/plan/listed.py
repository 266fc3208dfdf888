"""What of a design's list of single cables counts for a work order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.model.design import FabricDesign
from assay.model.explicit import ExplicitCable, ExplicitEnd
from assay.model.fleet import Fleet
from assay.plan.job import Job

Ends = tuple[tuple[str, int, str], tuple[str, int, str]]


def structure(design: FabricDesign, fleet: Fleet) -> list[object]:
    """Return what decides which ports the list joins: its ends, and who answers to the names in it."""
    if not design.cables:
        return []
    named = [(name, switch.guid) for name, _, _, switch in design.switches()]
    adapters = [(name, fleet.nodes[name].hca_guids) for name in sorted(nodes(design.cables)) if name in fleet.nodes]
    return [sorted(map(_ends, design.cables)), named, adapters]


def nodes(cables: Iterable[ExplicitCable]) -> set[str]:
    """Return whose adapters listed cables may name: `n0001 mlx5_0` is one of n0001."""
    return {end.device.partition(" ")[0] for cable in cables for _, end in cable.ends}


def changed(old: FabricDesign, new: FabricDesign) -> Iterator[Job]:
    """Yield listed cables that stay where they are, and are of another rate or length."""
    known = set(new.node_names())
    was = {_ends(cable): cable for cable in old.cables}
    for cable in new.cables:
        before = was.get(_ends(cable))
        if before is None:
            continue
        ends = f"the cable from {_told(cable.a)} to {_told(cable.b)}"
        names = tuple(sorted(nodes([cable]) & known))
        if cable.rate and cable.rate != (before.rate or old.rate):
            yield Job(new.name, "rate", (f"{ends}: {before.rate or old.rate} → {cable.rate}",), names)
        if cable.length_m != before.length_m:
            yield Job(new.name, "length", (f"{ends}: {before.length_m:g} m → {cable.length_m:g} m",), names)


def _ends(cable: ExplicitCable) -> Ends:
    """Return a cable's ends, the same ones whichever way round it is written."""
    one, other = sorted((end.device, end.port, end.guid or "") for _, end in cable.ends)
    return one, other


def _told(end: ExplicitEnd) -> str:
    return f"{end.device} port {end.port}"
