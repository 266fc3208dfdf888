"""Cables and their ends: what a design promises and what a discovery finds, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

DeviceKind = Literal["hca", "switch", "router"]


class Port(NamedTuple):
    """The identity of a port: the device's node GUID (`0x` + 16 lower-case hex) and the port's number."""

    guid: str
    number: int


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable as hands find it. `label` is what is printed at the port; `u` 0 means not known."""

    device: str
    guid: str
    port: int
    label: str = ""
    rack: str = ""
    u: int = 0
    site: str = ""
    node: str = ""

    @property
    def at(self) -> Port:
        """The port's identity."""
        return Port(self.guid, self.port)

    def as_json(self) -> dict[str, Any]:
        """Return device, guid and port, and of the rest what is known."""
        known = {"label": self.label, "rack": self.rack, "u": self.u, "site": self.site, "node": self.node}
        return {"device": self.device, "guid": self.guid, "port": self.port} | {k: v for k, v in known.items() if v}

    def __str__(self) -> str:
        port = f"port {self.label}" if self.label else f"port {self.port}"
        place = f" ({self.rack} U{self.u})" if self.rack else ""
        return f"{self.device} {port}{place}"


@dataclass(frozen=True, slots=True)
class Cable:
    """Two ends and the rate between them (`4xNDR`). `length_m` is of the design, 0 where it does not say."""

    a: End
    b: End
    rate: str = ""
    length_m: float = 0

    @property
    def ends(self) -> tuple[End, End]:
        """Both ends."""
        return self.a, self.b

    def as_json(self) -> list[dict[str, Any]]:
        """Return the pair of ends."""
        return [self.a.as_json(), self.b.as_json()]


def guid_of(digits: str) -> str:
    """Return the canonical form of a GUID, with or without `0x`. Raises ValueError for anything but 1 to 16 hex digits.

    Tools drop leading zeros in some places and keep them in others; identity must not depend on that.
    """
    number = int(digits, 16)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{digits!r} is no 64-bit GUID")
    return f"0x{number:016x}"
