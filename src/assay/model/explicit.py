"""What a design says one by one: devices and cables beside its rules, cables that differ from them, ports left free."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from assay.model.cable import DeviceKind
from assay.model.span import Ports
from assay.model.spec import Strict
from assay.model.speed import RATE

GUID = r"^0x[0-9a-f]{16}$"
Guid = Annotated[str, Field(pattern=GUID)]
LinkRate = Annotated[str, Field(pattern=RATE)]
ONE_LINE = rf"^\S.*/\d{{1,5}} - \S.*/\d{{1,5}}( {RATE[1:-1]})?( \d{{1,4}}(\.\d{{1,3}})?m)?$"
_LINE = re.compile(r"(.+?)/(\d+) - (.+?)/(\d+)(?: (\d+x\w+))?(?: ([\d.]+)m)?")


class ExplicitDevice(Strict):
    """A device that the rules do not give. A switch that does not tell its `ports` is of the design's model.

    `node` is the machine that an adapter is in, which is carried as one with all of its adapters. The inventory says it
    of the adapters that it knows.
    """

    guid: Guid
    name: str = Field(min_length=1)
    kind: DeviceKind = "switch"
    ports: int = Field(default=0, ge=0, le=4096)
    node: str = ""
    rack: str = ""
    u: int = Field(default=0, ge=0)


class ExplicitEnd(Strict):
    """One end of a cable.

    `device` names a switch of the design or the adapter of a node (`n0001 mlx5_0`), or is a GUID. A device that is
    neither, and is not in `devices`, carries its `guid` and `kind`, and the place where hands find it.
    """

    device: str = Field(min_length=1)
    port: int = Field(ge=1)
    guid: Guid | None = None
    kind: DeviceKind = "switch"
    rack: str = ""
    u: int = Field(default=0, ge=0)

    @property
    def known_guid(self) -> str | None:
        """The GUID, however it is given."""
        return self.guid or (self.device if re.match(GUID, self.device) else None)


class ExplicitCable(Strict):
    """A cable between two ends. `rate` is the design's where it is left out.

    May be written in one line, `n0001 mlx5_0/1 - leaf-su01-r0/1 4xNDR 10m`; rate and length may be left out.
    """

    a: ExplicitEnd
    b: ExplicitEnd
    rate: LinkRate | None = None
    length_m: float = Field(default=0, ge=0)

    @property
    def ends(self) -> tuple[tuple[str, ExplicitEnd], tuple[str, ExplicitEnd]]:
        """Both ends, each with its key."""
        return ("a", self.a), ("b", self.b)


def _spelled_out(cable: Any) -> Any:
    """Return what a cable in one line says; anything else as it is."""
    if not isinstance(cable, str):
        return cable
    found = _LINE.fullmatch(cable) if re.match(ONE_LINE, cable) else None
    if not found:
        raise ValueError(f"{cable!r} is no cable; write DEVICE/PORT - DEVICE/PORT, then the rate and the length in m")
    a, a_port, b, b_port, rate, length = found.groups()
    ends = {"a": {"device": a, "port": int(a_port)}, "b": {"device": b, "port": int(b_port)}}
    return ends | ({"rate": rate} if rate else {}) | ({"length_m": float(length)} if length else {})


CableLine = Annotated[str, Field(pattern=ONE_LINE)]
ListedCable = Annotated[ExplicitCable, BeforeValidator(_spelled_out, json_schema_input_type=ExplicitCable | CableLine)]


class PortName(Strict):
    """A port of a device of the design."""

    device: str = Field(min_length=1)
    port: int = Field(ge=1)


class Override(Strict):
    """A cable of the rules that is not as they have it: the plug at `device`, `port` is in the port `to` instead.

    Without `to` there is no such cable. `why` is for whoever wonders later.
    """

    device: str = Field(min_length=1)
    port: int = Field(ge=1)
    to: PortName | None = None
    rate: LinkRate | None = None
    length_m: float | None = Field(default=None, ge=0)
    why: str = ""


class Spare(Strict):
    """Ports, or all ports of a device, that are there and free on purpose. A cable in one of them is unexpected."""

    device: str = Field(min_length=1)
    ports: Ports | None = None
    why: str = ""
