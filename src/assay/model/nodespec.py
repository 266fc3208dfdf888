"""NodeSpec: what a node of one kind must be."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from assay.model.errors import Contradiction, Misfit
from assay.model.hostspec import Host
from assay.model.spec import Spec, Strict
from assay.model.units import UNITS, spelling


class Gpus(Strict):
    """GPUs by slot: `pci[3]` is the place of `gpu3`, whether or not a GPU answers there."""

    model: str
    pci: list[str] = Field(min_length=1)

    @property
    def count(self) -> int:
        """How many GPUs the node must have."""
        return len(self.pci)


class Hca(Strict):
    """One InfiniBand adapter, by its kernel name and the rail it serves (counted from 0)."""

    name: str
    rail: int = Field(ge=0)
    pci: str


class Nic(Strict):
    """One front-end network interface; `mtu` in bytes, None where any will do."""

    name: str
    speed_mbps: int = Field(gt=0)
    mtu: int | None = Field(default=None, ge=68)


class Nvme(Strict):
    """Local drives, `nvme0` to `nvme<count - 1>`."""

    count: int = Field(ge=0)
    size_gb: int = Field(gt=0)


class Psus(Strict):
    """Power supplies; `needed` of them must carry the load. None where the rack feeds the node by a busbar."""

    count: int = Field(ge=0)
    needed: int = Field(ge=0)

    @model_validator(mode="after")
    def _no_more_needed_than_there_are(self) -> Psus:
        if self.needed > self.count:
            raise ValueError(f"needed ({self.needed}) is more than count ({self.count})")
        return self


class Boot(Strict):
    """How the node starts: `first` is a pattern (`UEFI: PXE*`) of its first boot option. None asks for nothing."""

    mode: Literal["UEFI", "Legacy"] = "UEFI"
    secure: bool | None = None
    first: str | None = None


class Limit(Strict):
    """One threshold. `source` names where the number comes from (a document, a measurement)."""

    value: float
    unit: str = Field(json_schema_extra={"enum": list(UNITS)})
    source: str

    @model_validator(mode="after")
    def _in_a_known_unit(self) -> Limit:
        if self.unit not in UNITS:
            raise Contradiction(
                Misfit("ASY0056", ("unit",), f"{self.unit!r} is no unit that assay knows", spelling(self.unit))
            )
        return self


class RackScale(Strict):
    """What one whole rack of such nodes holds, where its nodes work as one machine (one NVLink domain)."""

    nodes: int = Field(gt=0)
    gpus: int = Field(gt=0)
    switch_trays: int = Field(ge=0)
    power_shelves: int = Field(ge=0)


class NodeSpec(Spec):
    """What a node of one kind must be. `firmware` names a FirmwareBundle; `limits` are per metric.

    `height_u` says how many rack units a node fills, upwards from its own; `rack` that a rack of them is one machine.
    """

    kind: Literal["NodeSpec"]
    product: str
    height_u: int = Field(default=1, gt=0, le=60)
    rack: RackScale | None = None
    gpus: Gpus
    hcas: list[Hca]
    nics: list[Nic]
    nvme: Nvme
    psus: Psus
    fans: int = Field(gt=0)
    cpu_sockets: int = Field(gt=0)
    cpu_threads: int = Field(gt=0)
    memory_gib: int = Field(gt=0)
    host: Host = Field(default=Host())
    driver: str
    firmware: str
    bios: dict[str, str] = Field(default={})
    boot: Boot = Field(default=Boot())
    leak_detectors: int = Field(default=0, ge=0)
    kernel_cmdline: list[str] = Field(default=[])
    limits: dict[str, Limit] = Field(default={})
