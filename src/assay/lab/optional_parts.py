"""Which parts of the lab are less real here, because this machine lacks a tool, or because the lab has no such part."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

from assay.lab.node.stub import COMPILERS, build_stub, find_compiler
from assay.lab.world import LabWorld
from assay.model.fleet import Fleet


class LabPart(NamedTuple):
    """A part, how it is made here, and what would make it more real; "" if nothing would."""

    name: str
    how: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.how}{f' → {self.fix}' if self.fix else ''}"


def list_parts(fleet: Fleet | None, world: LabWorld | None = None) -> Iterator[LabPart]:
    """Yield the parts that depend on this machine, and what of a fleet cannot be rehearsed.

    With the `world` of a lab, a C compiler must also have compiled what the lab needs.
    """
    yield LabPart("Fabric", "virtual; discoveries are printed as ibnetdiscover, or lldpctl on Ethernet, prints them")
    if build_stub(world.home / "lib") if world else find_compiler():
        yield LabPart("NVML", "a stub of libnvidia-ml.so.1")
    else:
        how = "readings are replayed, and a burn-in sees no temperatures or errors of GPUs"
        yield LabPart("NVML", how, f"install a C compiler: {', '.join(COMPILERS)}")
    if find_spec("numpy") is None:
        how = "digests are made up: no fault of a computation is rehearsed but those that are planted"
        yield LabPart("Battery and training", how, "pip install 'assay-fleet[load]'")
    for design in fleet.designs.values() if fleet else ():
        if design.nvlink:
            yield LabPart("NVLink domain", f"{design.name} is not rehearsed: the lab cables InfiniBand only")
