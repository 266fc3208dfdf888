"""What fabric tools report, whichever tool it was: cables, devices, and per port state, counters, error ratios, module.

Readers fill it, also with what they could not read, and which devices that puts in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.model.specs.fabric.cable import DeviceKind, PortId

ModuleValue = str | float | tuple[float, ...]

CLASSIC_COUNTER_MAX: Mapping[str, int] = {
    "SymbolErrorCounter": 0xFFFF,
    "LinkErrorRecoveryCounter": 0xFF,
    "LinkDownedCounter": 0xFF,
    "PortRcvErrors": 0xFFFF,
    "PortRcvRemotePhysicalErrors": 0xFFFF,
    "PortRcvSwitchRelayErrors": 0xFFFF,
    "PortXmitDiscards": 0xFFFF,
    "PortXmitConstraintErrors": 0xFF,
    "PortRcvConstraintErrors": 0xFF,
    "LocalLinkIntegrityErrors": 0xF,
    "ExcessiveBufferOverrunErrors": 0xF,
    "QP1Dropped": 0xFFFF,
    "VL15Dropped": 0xFFFF,
    "PortXmitData": 0xFFFFFFFF,
    "PortRcvData": 0xFFFFFFFF,
    "PortXmitPkts": 0xFFFFFFFF,
    "PortRcvPkts": 0xFFFFFFFF,
    "PortXmitWait": 0xFFFFFFFF,
}
"""The maximum of each classic counter, where it stops (InfiniBand Architecture Specification, PortCounters)."""
AGGREGATION_NODE = "Mellanox Technologies Aggregation Node"
"""The NodeDesc of a SHARP aggregation node: an adapter inside a switch, which no cable leads to."""


@dataclass(frozen=True, slots=True)
class PortFacts:
    """One port as one or several tools described it. A field that no tool reported is empty, never zero.

    - `state`: active, init, armed, down or disabled. `physical`: the physical state in lower case (linkup, polling …).
    - `rate`: `4xNDR`. `label`: what is printed at the port.
    - `counters`: by perfquery's names; what only Ethernet counts by those of `health/counters.py`. One in `saturated`
      reached its maximum, so the true count may be higher.
    - `ber`: bit error ratios named raw, effective and symbol.
    - `fec_bins`: how many blocks the forward error correction repaired, by how many symbols were wrong in them; bin 0
      counts blocks without an error.
    - `module`: vendor, part, serial, firmware, technology, length_m, temperature_c, voltage_mv; and, as one tuple over
      the lanes, rx_power_dbm, tx_power_dbm and bias_ma.
    - `pkeys`: the P_Keys of the partition table, 16 bits each, the top bit for full members. None unless a tool read
      the whole table.
    - `m_key_protect`: the protect bits of its M_Key: with 0, everybody may read the key, or there is none. None if
      unread. The key itself is never kept.
    """

    port: PortId
    state: str = ""
    physical: str = ""
    rate: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    ber: Mapping[str, float] = field(default_factory=dict)
    module: Mapping[str, ModuleValue] = field(default_factory=dict)
    label: str = ""
    saturated: frozenset[str] = frozenset()
    pkeys: frozenset[int] | None = None
    fec_bins: tuple[int, ...] = ()
    m_key_protect: int | None = None

    def module_number(self, name: str) -> float | None:
        """Return a number that the module reports, None if it was not read."""
        number = self.module.get(name)
        return float(number) if isinstance(number, int | float) else None

    def module_lanes(self, name: str) -> tuple[float, ...]:
        """Return what the module reports of each lane, nothing if it was not read."""
        lanes = self.module.get(name)
        return tuple(map(float, lanes)) if isinstance(lanes, tuple | list) else ()


def find_saturated_counters(counters: Mapping[str, int]) -> frozenset[str]:
    """Return the names of the classic counters that reached their maximum, where further errors no longer show."""
    return frozenset(
        name for name, count in counters.items() if name in CLASSIC_COUNTER_MAX and count >= CLASSIC_COUNTER_MAX[name]
    )


def merge_port_facts(facts: Iterable[PortFacts]) -> dict[PortId, PortFacts]:
    """Return one PortFacts a port. Where two tools report the same field, the later one wins."""
    by_port: dict[PortId, PortFacts] = {}
    for port in facts:
        known = by_port.get(port.port)
        by_port[port.port] = _merge(known, port) if known else port
    return by_port


def _merge(first: PortFacts, later: PortFacts) -> PortFacts:
    merged: dict[str, object] = {}
    for name in PortFacts.__slots__:
        old, new = getattr(first, name), getattr(later, name)
        merged[name] = {**old, **new} if isinstance(new, Mapping) else new if new or new == 0 or old is None else old
    merged["saturated"] = frozenset(first.saturated - later.counters.keys()) | later.saturated
    return PortFacts(**merged)  # type: ignore[arg-type]


class DiscoveredCable(NamedTuple):
    """A cable as a tool reported it. `rate` is the tool's text (`4xNDR`), empty where it could not be read."""

    a: PortId
    b: PortId
    rate: str


class DiscoveredDevice(NamedTuple):
    """A device as it announced itself. The description (NodeDesc) is a hint, never an identity.

    `system` is its system image GUID, which all chips of one box share; "" where the tool does not tell it.
    """

    guid: str
    kind: DeviceKind
    ports: int
    description: str
    system: str = ""

    @property
    def name(self) -> str:
        """The description without what switches put around their name (`MF0;NAME:MQM9700/U1`)."""
        wrapped = re.fullmatch(r"MF0;(.+):\w+/\w+", self.description)
        return (wrapped[1] if wrapped else self.description).strip() or self.guid


@dataclass(frozen=True)
class FabricDiscovery:
    """Every cable once and every device by GUID. With `problems`, which name what could not be read, it is `partial`.

    `facts` describe single ports, `temperatures` are those of devices (°C by GUID). Many tools report neither. `notes`
    name lines of the text that are not the tool's, such as a prompt. Nothing is missing because of them. With
    `port_guids`, the tool names adapters by the GUIDs of their ports; with `names_devices`, by MACs or by names.
    `split` is in how many ports the most split cage of the switches is, 0 if unknown.
    """

    cables: Sequence[DiscoveredCable]
    devices: Mapping[str, DiscoveredDevice]
    problems: Sequence[str] = ()
    facts: Mapping[PortId, PortFacts] = field(default_factory=dict)
    temperatures: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()
    port_guids: bool = False
    names_devices: bool = False
    split: int = 1

    @property
    def partial(self) -> bool:
        """Whether parts of the fabric may be missing here, so that an absent cable proves nothing."""
        return bool(self.problems)


class LocalProblem(str):
    """A problem that puts only some devices in doubt: ports of these may be missing from the text.

    `devices` are their GUIDs; without any, the problem hides no port. A problem that is a plain `str` puts everything
    in doubt, such as a lost packet, of which nobody knows what it would have shown.
    """

    __slots__ = ("devices",)

    def __new__(cls, text: str, *devices: str) -> LocalProblem:
        """Make the problem."""
        self = super().__new__(cls, text)
        self.devices = frozenset(devices) - {""}
        return self

    devices: frozenset[str]


def find_doubtful_devices(problems: Iterable[str]) -> frozenset[str] | None:
    """Return the GUIDs of the devices that the problems put in doubt, None where everything is in doubt."""
    doubtful: set[str] = set()
    for problem in problems:
        if not isinstance(problem, LocalProblem):
            return None
        doubtful |= problem.devices
    return frozenset(doubtful)
