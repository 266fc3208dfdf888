"""Parts of a fabric design that are written one by one: devices, cables, overrides, spare ports and partitions.

Ranges are written as ports `1..32` and nodes `n0001..n0020`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.specs.fabric.cable import RATE_PATTERN, DeviceKind
from assay.model.specs.spec_document import StrictModel

MAX_DESIGN_NODES = 200_000
"""Nodes of one design. A longer range is taken for a typing error."""


def parse_port_range(text: str) -> Sequence[int]:
    """Return the port numbers of `first..last`, both included; of `first..last/2`, every second one.

    Several ranges stand with commas between them: `1..12,25..36`.
    """
    ports: list[int] = []
    for ends, _, step in (each.partition("/") for each in text.split(",")):
        first, last = ends.split("..")
        ports += range(int(first), int(last) + 1, int(step or 1))
    return ports


def _check_ports(ports: str) -> str:
    numbers = parse_port_range(ports)
    if not numbers or min(numbers) < 1:
        raise ConflictError(FieldConflict("ASY0084", (), f"{ports!r} holds no ports", "write it as 1..32"))
    if len({*numbers}) < len(numbers):
        raise ConflictError(FieldConflict("ASY0080", (), f"{ports!r} holds a port twice", "write it as 1..12,25..36"))
    return ports


_RANGE = r"\d{1,5}\.\.\d{1,5}(/[1-8])?"
PortRange = Annotated[str, Field(pattern=rf"^{_RANGE}(,{_RANGE})*$"), AfterValidator(_check_ports)]


def expand_node_names(entry: str) -> list[str]:
    """Return the names of the range `n0001..n0020`, or the entry itself if it is no range.

    Raises ValueError if the ends have different prefixes, the last number is the smaller one, or the range is too long.
    """
    if ".." not in entry:
        return [entry]
    first, last = (re.fullmatch(r"(.*?)(\d{1,9})", end) for end in entry.split("..", 1))
    if not first or not last or first[1] != last[1] or int(first[2]) > int(last[2]):
        raise ValueError(f"{entry!r} is no range of names; write it as n0001..n0020")
    if int(last[2]) - int(first[2]) >= MAX_DESIGN_NODES:
        raise ValueError(f"{entry!r} is a range of more than {MAX_DESIGN_NODES} names")
    return [f"{first[1]}{number:0{len(first[2])}}" for number in range(int(first[2]), int(last[2]) + 1)]


def format_node_list(names: Iterable[str]) -> str:
    """Return node names in their order as a YAML list: `["n0001..n0006", "n0008"]`."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _is_next(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    entries = (name for run in runs for name in (run if len(run) < 3 else [f"{run[0]}..{run[-1]}"]))
    return "[" + ", ".join(f'"{entry}"' for entry in entries) + "]"


def _is_next(name: str, other: str) -> bool:
    """Whether a range may hold both names, one after the other."""
    try:
        return expand_node_names(f"{name}..{other}") == [name, other]
    except ValueError:
        return False


GUID_PATTERN = r"^0x[0-9a-f]{16}$"
DeviceGuid = Annotated[str, Field(pattern=GUID_PATTERN)]
LinkRate = Annotated[str, Field(pattern=RATE_PATTERN)]
CABLE_LINE_PATTERN = rf"^\S.*/\d{{1,5}} - \S.*/\d{{1,5}}( {RATE_PATTERN[1:-1]})?( \d{{1,4}}(\.\d{{1,3}})?m)?$"
_CABLE_LINE = re.compile(r"(.+?)/(\d+) - (.+?)/(\d+)(?: (\d+x\w+|\d+G))?(?: ([\d.]+)m)?")


class ExplicitDevice(StrictModel):
    """A device that the rules do not include. A switch without `ports` is of the design's switch model.

    `node` is the machine that holds an adapter. It is needed only for adapters that the inventory does not list.

    `guid`: its GUID, as on its label. `name`: its name in cables and tickets. `kind`: what it is. `rack`, `u`: where it
    stands. `box`: the chassis that it is a chip of, such as a director switch or a switch with several ASICs; a cable
    between two chips of one box is a link inside it. `module`: the line card or spine card that it is on.
    `plane`: in a box with one chip a plane (Quantum-X800), the plane that this chip carries. Ports of the same number
    on the chips of the box are parts of one plug.
    """

    guid: DeviceGuid
    name: str = Field(min_length=1)
    kind: DeviceKind = "switch"
    ports: int = Field(default=0, ge=0, le=4096)
    node: str = ""
    box: str = ""
    module: str = ""
    plane: int = Field(default=0, ge=0, le=64)
    rack: str = ""
    u: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _check_plane(self) -> Self:
        if self.plane and not self.box:
            raise ValueError(f"{self.name} has a plane but no box: a plane is a part of every plug of a box")
        return self


class ExplicitEnd(StrictModel):
    """One end of a cable.

    `device` names a switch of the design, an adapter of a node (`n0001 mlx5_0`), or is a GUID. For any other device
    that is not in `devices`, give its `guid`, `kind` and place (`rack`, `u`) here.

    `port`: the number of the port.
    """

    device: str = Field(min_length=1)
    port: int = Field(ge=1)
    guid: DeviceGuid | None = None
    kind: DeviceKind = "switch"
    rack: str = ""
    u: int = Field(default=0, ge=0)

    @property
    def guid_or_device_guid(self) -> str | None:
        """The field `guid`, or `device` where that is a GUID."""
        return self.guid or (self.device if re.match(GUID_PATTERN, self.device) else None)


class ExplicitCable(StrictModel):
    """A cable between two ends. Without `rate`, the design's rate applies.

    It may also be one line, `n0001 mlx5_0/1 - leaf-su01-r0/1 4xNDR 10m`, with rate and length optional.

    `a`, `b`: the two ends. `length_m`: its length; 0 means not given.
    """

    a: ExplicitEnd
    b: ExplicitEnd
    rate: LinkRate | None = None
    length_m: float = Field(default=0, ge=0)

    @property
    def ends(self) -> tuple[tuple[str, ExplicitEnd], tuple[str, ExplicitEnd]]:
        """Both ends, each with its key `a` or `b`."""
        return ("a", self.a), ("b", self.b)


def _parse_cable_line(cable: Any) -> Any:
    """Return a cable written in one line as a mapping; anything else unchanged."""
    if not isinstance(cable, str):
        return cable
    match = _CABLE_LINE.fullmatch(cable) if re.match(CABLE_LINE_PATTERN, cable) else None
    if not match:
        raise ValueError(f"{cable!r} is no cable; write DEVICE/PORT - DEVICE/PORT, then the rate and the length in m")
    a, a_port, b, b_port, rate, length = match.groups()
    ends = {"a": {"device": a, "port": int(a_port)}, "b": {"device": b, "port": int(b_port)}}
    return ends | ({"rate": rate} if rate else {}) | ({"length_m": float(length)} if length else {})


CableLine = Annotated[str, Field(pattern=CABLE_LINE_PATTERN)]
ListedCable = Annotated[
    ExplicitCable, BeforeValidator(_parse_cable_line, json_schema_input_type=ExplicitCable | CableLine)
]


class DevicePort(StrictModel):
    """A port of a device of the design.

    `device`: its name in the design, or its GUID. `port`: its number.
    """

    device: str = Field(min_length=1)
    port: int = Field(ge=1)


class CableOverride(StrictModel):
    """A cable that differs from the rules: the plug at `device`, `port` is in the port `to` instead.

    Without `to`, the cable does not exist. `why` records the reason.

    `rate`: the rate of this cable, if it differs. `length_m`: its length, if it differs.
    """

    device: str = Field(min_length=1)
    port: int = Field(ge=1)
    to: DevicePort | None = None
    rate: LinkRate | None = None
    length_m: float | None = Field(default=None, ge=0)
    why: str = ""


class SparePorts(StrictModel):
    """Ports of a device (all without `ports`) that are free on purpose. A cable in one of them is unexpected.

    `device`: its name in the design, or its GUID. `ports`: first and last, `61..64`.
    """

    device: str = Field(min_length=1)
    ports: PortRange | None = None
    why: str = ""


FULL_MEMBER_BIT = 0x8000
"""The bit of a P_Key that makes its port a full member. The other 15 bits name the partition. Limited members reach
full members only (InfiniBand Architecture Specification, partitioning)."""

PartitionMembership = Literal["full", "limited"]
PkeyText = Annotated[str, Field(pattern=r"^0x(000[1-9a-f]|00[1-9a-f][0-9a-f]|0[1-9a-f][0-9a-f]{2}|[1-7][0-9a-f]{3})$")]


class FabricPartition(StrictModel):
    """Members of one partition: the adapters of `nodes` (names or ranges), or of every node if `nodes` is empty.

    `pkey` has 15 bits; `0x7fff` is the default partition. A node that is both a full and a limited member needs two
    entries.

    `membership`: full members reach all, limited ones only full ones. `description`: what it is for.
    """

    pkey: PkeyText
    membership: PartitionMembership
    nodes: list[str] = Field(default=[])
    description: str = ""

    @property
    def pkey_value(self) -> int:
        """The 16-bit P_Key as in a port's P_Key table, membership bit included."""
        return int(self.pkey, 16) | (FULL_MEMBER_BIT if self.membership == "full" else 0)

    def includes_node(self, node: str) -> bool:
        """Whether a node's adapters are members."""
        return not self.nodes or node in self._node_names

    @cached_property
    def _node_names(self) -> frozenset[str]:
        return frozenset(name for entry in self.nodes for name in expand_node_names(entry))
