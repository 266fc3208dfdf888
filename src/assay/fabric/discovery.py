"""What a discovery found, whichever tool wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.fabric.port_facts import FabricEvent, PortFacts
from assay.model.cable import DeviceKind, Port

AGGREGATION = "Mellanox Technologies Aggregation Node"
"""The NodeDesc of a SHARP aggregation node: an adapter inside a switch that no cable leads to."""


class FoundCable(NamedTuple):
    """A cable as a tool saw it; `rate` is its text, empty where it could not be read."""

    a: Port
    b: Port
    rate: str


class FoundDevice(NamedTuple):
    """A device as it announced itself. The description is a hint, never an identity."""

    guid: str
    kind: DeviceKind
    ports: int
    description: str

    @property
    def name(self) -> str:
        """The description without what switches put around their name (`MF0;NAME:MQM9700/U1`)."""
        wrapped = re.fullmatch(r"MF0;(.+):\w+/\w+", self.description)
        return (wrapped[1] if wrapped else self.description).strip() or self.guid


@dataclass(frozen=True)
class Discovery:
    """Every cable once and every device by GUID. `problems` says what could not be read; then it is `partial`.

    `facts` are what was said of single ports, `events` what a fabric manager reported, `temperatures` how warm devices
    themselves are (°C by GUID); many tools say none of them.
    """

    cables: Sequence[FoundCable]
    devices: Mapping[str, FoundDevice]
    problems: Sequence[str] = ()
    facts: Mapping[Port, PortFacts] = field(default_factory=dict)
    events: Sequence[FabricEvent] = ()
    temperatures: Mapping[str, float] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether something of the fabric may be missing here, so that nothing may be concluded from absence."""
        return bool(self.problems)
