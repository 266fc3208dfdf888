"""Ports, cables and link rates, in one form for designs and discoveries. Also the labels printed at switch ports."""

from __future__ import annotations

from typing import Literal, NamedTuple

from assay.model.facts import fact, frozen, internal, shown

DeviceKind = Literal["hca", "switch", "router"]


class PortId(NamedTuple):
    """The identity of a port: the device's node GUID (`0x` and 16 lower-case hex digits) and the port number."""

    guid: str
    number: int


@fact
class CableEnd:
    """One end of a cable. What is not known is missing."""

    device: str
    """The name of the device, a switch or an adapter."""
    guid: str
    """Its GUID."""
    port: int
    """The number of the port."""
    label: str = shown(omit=True, default="")
    """The port as printed on the device."""
    rack: str = shown(omit=True, default="")
    """The rack of the device."""
    u: int = shown(omit=True, default=0)
    """Its place in the rack, in rack units."""
    site: str = shown(omit=True, default="")
    """The building or room."""
    node: str = shown(omit=True, default="")
    """The node that the adapter is in."""
    box: str = internal(default="")
    """The chassis that the device is a chip of."""
    plane: int = internal(default=0)
    """The plane of that chassis: its chips share each plug."""

    @property
    def port_id(self) -> PortId:
        """The port's identity."""
        return PortId(self.guid, self.port)

    def __str__(self) -> str:
        port = f"port {self.label}" if self.label else f"port {self.port}"
        place = f" ({self.rack}{f' U{self.u}' if self.u else ''})" if self.rack else ""
        return f"{self.device} {port}{place}"


@frozen
class Cable:
    """Two ends and the rate between them (`4xNDR`). `length_m` comes from the design; 0 means not given."""

    a: CableEnd
    b: CableEnd
    rate: str = ""
    length_m: float = 0

    @property
    def ends(self) -> tuple[CableEnd, CableEnd]:
        """Both ends."""
        return self.a, self.b


def normalize_guid(digits: str) -> str:
    """Return the canonical form of a GUID that may lack `0x` or leading zeros, as some tools print it.

    Raises ValueError for anything but 1 to 16 hex digits.
    """
    number = int(digits, 16)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{digits!r} is no 64-bit GUID")
    return f"0x{number:016x}"


def read_mac(guid: str) -> str:
    """Return the MAC in a GUID, as 12 hex digits; "" where there is none.

    A MAC itself is written as a GUID with four zeros in front. Drivers put it around `0300` (mlx5), or around `fffe`
    with one bit turned (EUI-64: bnxt_re, irdma).
    """
    digits = guid.removeprefix("0x")
    if digits.startswith("0000"):
        return digits[4:]
    if digits[6:10] == "0300":
        return digits[:6] + digits[10:]
    return f"{int(digits[:2], 16) ^ 2:02x}{digits[2:6]}{digits[10:]}" if digits[6:10] == "fffe" else ""


def format_mac(guid: str) -> str:
    """Return the MAC in a GUID, as lldpctl writes it; of a GUID without one, its last twelve digits."""
    digits = read_mac(guid) or guid[-12:]
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


class PortLabelling(NamedTuple):
    """How a switch labels its ports. `cage` ports share a cage (0: labels without cages); `split` ports share a port.

    Port numbers are InfiniBand's, and split ports count singly. With two ports a cage, port 5 reads `3/1`. If each
    port is also split in two, it reads `2/1/1`.
    """

    cage: int = 0
    split: int = 1

    def label(self, port: int) -> str:
        """Return the label printed at a port."""
        whole, part = divmod(port - 1, self.split)
        printed = f"{whole // self.cage + 1}/{whole % self.cage + 1}" if self.cage else str(whole + 1)
        return f"{printed}/{part + 1}" if self.split > 1 else printed

    def ports_sharing_cage(self, port: int) -> range:
        """Return the ports that lose their link when the plug of this port is pulled."""
        each = max(self.cage, 1) * self.split
        first = (port - 1) // each * each + 1
        return range(first, first + each)


LANE_GBPS = {
    "SDR": 2.5,
    "DDR": 5,
    "QDR": 10,
    "FDR10": 10,
    "FDR": 14,
    "EDR": 25,
    "HDR": 50,
    "NDR": 100,
    "XDR": 200,
}
"""Gb/s of one lane by speed, slowest first. Source: rate_show in the kernel's drivers/infiniband/core/sysfs.c."""
LINK_WIDTHS = (1, 2, 4, 8, 12)
ETHERNET_GBPS = (1, 10, 25, 40, 50, 100, 200, 400, 800, 1600)
"""Gb/s of a port (IEEE 802.3): an Ethernet rate is written `400G`, however many lanes it has."""
RATE_PATTERN = (
    rf"^(?:(?:{'|'.join(map(str, LINK_WIDTHS))})x(?:{'|'.join(LANE_GBPS)})|(?:{'|'.join(map(str, ETHERNET_GBPS))})G)$"
)


def is_ethernet_rate(rate: str) -> bool:
    """Return whether a rate is Ethernet's, `400G`."""
    return rate.endswith("G")


def rate_to_gbps(rate: str) -> float:
    """Return the Gb/s of a rate."""
    width, _, speed = rate.partition("x")
    return int(width) * LANE_GBPS[speed] if speed else int(width.removesuffix("G"))


def find_next_slower_gbps(rate: str) -> float:
    """Return the Gb/s of the fastest link that has fewer lanes or a lower speed than `rate`; 0 if there is none."""
    width, full = rate.partition("x")[0], rate_to_gbps(rate)
    if width == rate:
        return max((gbps for gbps in ETHERNET_GBPS if gbps < full), default=0)
    candidates = (lanes * lane for lanes in LINK_WIDTHS if lanes <= int(width) for lane in LANE_GBPS.values())
    return max((gbps for gbps in candidates if gbps < full), default=0)
