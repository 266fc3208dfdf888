"""Cables and their ends: what a design promises and what a discovery finds, in one form.

What is printed at the ports of a switch, and which of them share a cage.

How fast a link of some width and speed is: `4xNDR` is 400 Gb/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

DeviceKind = Literal["hca", "switch", "router"]


class PortId(NamedTuple):
    """The identity of a port: the device's node GUID (`0x` + 16 lower-case hex) and the port's number."""

    guid: str
    number: int


@dataclass(frozen=True, slots=True)
class CableEnd:
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
    def port_id(self) -> PortId:
        """The port's identity."""
        return PortId(self.guid, self.port)

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

    a: CableEnd
    b: CableEnd
    rate: str = ""
    length_m: float = 0

    @property
    def ends(self) -> tuple[CableEnd, CableEnd]:
        """Both ends."""
        return self.a, self.b

    def as_json(self) -> list[dict[str, Any]]:
        """Return the pair of ends."""
        return [self.a.as_json(), self.b.as_json()]


def normalize_guid(digits: str) -> str:
    """Return the canonical form of a GUID, with or without `0x`. Raises ValueError for anything but 1 to 16 hex digits.

    Tools drop leading zeros in some places and keep them in others; identity must not depend on that.
    """
    number = int(digits, 16)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{digits!r} is no 64-bit GUID")
    return f"0x{number:016x}"


class PortLabelling(NamedTuple):
    """How a switch counts. `cage` ports share a cage (0: it has none that matter); each may be split into `split`.

    Ports are numbered as InfiniBand does, split ones singly: port 5 of a switch with two ports a cage reads `3/1`; if
    its ports are split in two, `2/1/1`.
    """

    cage: int = 0
    split: int = 1

    def label(self, port: int) -> str:
        """Return what is printed at a port."""
        whole, part = divmod(port - 1, self.split)
        printed = f"{whole // self.cage + 1}/{whole % self.cage + 1}" if self.cage else str(whole + 1)
        return f"{printed}/{part + 1}" if self.split > 1 else printed

    def ports_sharing_cage(self, port: int) -> range:
        """Return the ports whose links go down when the plug of this one is pulled."""
        each = max(self.cage, 1) * self.split
        first = (port - 1) // each * each + 1
        return range(first, first + each)


LANE_GBPS = {
    "SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200,
}  # fmt: skip
"""Gb/s of one lane by its speed, slowest first, as the kernel's `rate` of a port counts them (rate_show in sysfs.c)."""
LINK_WIDTHS = (1, 2, 4, 8, 12)
RATE_PATTERN = rf"^({'|'.join(map(str, LINK_WIDTHS))})x({'|'.join(LANE_GBPS)})$"


def rate_to_gbps(rate: str) -> float:
    """Return the Gb/s of a rate."""
    width, _, speed = rate.partition("x")
    return int(width) * LANE_GBPS[speed]


def find_next_slower_gbps(rate: str) -> float:
    """Return the Gb/s of the best link that lacks lanes or speed against a rate; 0 where there is none."""
    width, full = int(rate.partition("x")[0]), rate_to_gbps(rate)
    every = (lanes * lane for lanes in LINK_WIDTHS if lanes <= width for lane in LANE_GBPS.values())
    return max((one for one in every if one < full), default=0)
