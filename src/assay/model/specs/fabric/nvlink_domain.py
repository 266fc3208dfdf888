"""The NVLink domain of a rack (GB200 and GB300 NVL72): each GPU has one link to each NVSwitch ASIC of the rack.

Devices are known by their place, which the fabric's controller reports: the index of the tray, and the number in it.
Public documents do not say which port of a GPU leads to which ASIC. So a port here has the number of the device at its
other end: port 5 of a GPU leads to the fifth ASIC, port 7 of an ASIC to the seventh GPU.

Sources: NVIDIA Multi-Node NVLink Systems Tuning Guide (18 compute trays of 4 GPUs, 9 switch trays); NVIDIA Blackwell
architecture brief (18 NVLink ports a GPU; two NVSwitch ASICs of 72 ports a switch tray).
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from pydantic import Field, field_validator

from assay.model.specs.fabric.design_parts import expand_node_names
from assay.model.specs.spec_document import StrictModel

NvlinkKind = Literal["gpu", "asic"]
DEVICES_PER_TRAY: dict[NvlinkKind, int] = {"gpu": 4, "asic": 2}
MAX_TRAYS: dict[NvlinkKind, int] = {"gpu": 18, "asic": 9}
KIND_NUMBERS: dict[NvlinkKind, int] = {"gpu": 1, "asic": 2}
PLACE_GUID = re.compile("0x4e564c0000(01|02)([0-9a-f]{2})([0-9a-f]{2})")


class NvlinkPlace(NamedTuple):
    """A GPU or an ASIC: the index of its tray, from 0 as the controller counts them, and its number there, from 1."""

    kind: NvlinkKind
    tray: int
    device: int

    @property
    def guid(self) -> str:
        """The identity of the place in designs and discoveries, which is no GUID of a device ("NVL" and the place)."""
        return f"0x4e564c0000{KIND_NUMBERS[self.kind]:02x}{self.tray:02x}{self.device:02x}"

    @property
    def number(self) -> int:
        """The number among all of its kind in the rack, from 1: the port that leads here."""
        return self.tray * DEVICES_PER_TRAY[self.kind] + self.device

    @property
    def description(self) -> str:
        """The place in words."""
        return f"{'compute' if self.kind == 'gpu' else 'switch'} tray {self.tray} {self.kind} {self.device}"


def find_nvlink_place(guid: str) -> NvlinkPlace | None:
    """Return the place that an identity stands for, None for a device's GUID."""
    match = PLACE_GUID.fullmatch(guid)
    return NvlinkPlace("gpu" if match[1] == "01" else "asic", int(match[2], 16), int(match[3], 16)) if match else None


class NvlinkDomain(StrictModel):
    """One rack whose GPUs reach each other through NVSwitch trays: GB200 and GB300 NVL72.

    `compute_trays`: the nodes, names or ranges, in the order of their tray index, from 0. `switch_trays`: how many
    switch trays. `rack`: where it stands. `switch_name`: what a switch tray is called, with its index. `discover`: the
    words of the command that prints what the rack's NMX Controller says; without it, the rack cannot be scanned.
    """

    compute_trays: list[str] = Field(min_length=1)
    switch_trays: int = Field(default=9, ge=1, le=MAX_TRAYS["asic"])
    rack: str = ""
    discover: list[str] = Field(default=[])
    switch_name: str = Field(default="nvswitch-{tray}", pattern=r"^[^{}]*\{tray(:0?\d)?\}[^{}]*$")

    @field_validator("compute_trays")
    @classmethod
    def _few_and_different(cls, entries: list[str]) -> list[str]:
        names = [name for entry in entries for name in expand_node_names(entry)]
        if len(names) > MAX_TRAYS["gpu"]:
            raise ValueError(f"{len(names)} compute trays, but a rack has {MAX_TRAYS['gpu']}")
        if len({*names}) < len(names):
            raise ValueError("a node is given twice")
        return entries

    @property
    def node_names(self) -> list[str]:
        """The nodes, in the order of their tray index."""
        return [name for entry in self.compute_trays for name in expand_node_names(entry)]

    def list_places(self, kind: NvlinkKind) -> list[NvlinkPlace]:
        """Return every GPU or ASIC of the rack, in the order of their numbers."""
        trays = len(self.node_names) if kind == "gpu" else self.switch_trays
        return [
            NvlinkPlace(kind, tray, device) for tray in range(trays) for device in range(1, DEVICES_PER_TRAY[kind] + 1)
        ]
