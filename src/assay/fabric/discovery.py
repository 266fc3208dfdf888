"""What tools say of one port: its state, its counters, its bit error ratios, the module plugged into it.

What a discovery found, whichever tool wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from assay.model.fabric.ports_and_cables import DeviceKind, PortId

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
"""Where the classic PortCounters stop counting (InfiniBand Architecture Specification, PortCounters attribute)."""


@dataclass(frozen=True, slots=True)
class PortFacts:
    """One port as one or several tools described it. What nobody said is empty, never zero.

    `state` is one of active, init, armed, down, disabled; `physical` is the physical state in lower case (linkup,
    polling …); `rate` is `4xNDR`. `counters` have perfquery's names; one in `saturated` stopped counting: the truth is
    "at least". `ber` has raw, effective and symbol. `module` has vendor, part, serial, firmware, technology, length_m,
    temperature_c, voltage_mv, and a tuple per lane of rx_power_dbm, tx_power_dbm and bias_ma. `label` is what is
    printed at the port. `pkeys` are the P_Keys of its partition table, 16 bits each (`assay.model.fabric.design_cables_and_partitions.FULL_MEMBER_BIT`);
    None where nobody read that table, whole.
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


@dataclass(frozen=True, slots=True)
class FabricEvent:
    """One thing that a fabric manager says has happened: its own time, code, severity and words."""

    at: str
    code: int
    severity: str
    category: str
    text: str
    ports: tuple[PortId, ...] = ()
    serial: str = ""


def find_saturated_counters(counters: Mapping[str, int]) -> frozenset[str]:
    """Return which of these classic counters stand at their end, where more errors no longer show."""
    return frozenset(
        name for name, count in counters.items() if name in CLASSIC_COUNTER_MAX and count >= CLASSIC_COUNTER_MAX[name]
    )


def merge_port_facts(facts: Iterable[PortFacts]) -> dict[PortId, PortFacts]:
    """Return one PortFacts a port. Where two tools speak of the same thing, the later one is believed."""
    by_port: dict[PortId, PortFacts] = {}
    for one in facts:
        known = by_port.get(one.port)
        by_port[one.port] = _both(known, one) if known else one
    return by_port


def _both(first: PortFacts, later: PortFacts) -> PortFacts:
    merged: dict[str, object] = {}
    for name in (one.name for one in fields(PortFacts)):
        old, new = getattr(first, name), getattr(later, name)
        merged[name] = {**old, **new} if isinstance(new, Mapping) else new if new or old is None else old
    merged["saturated"] = frozenset(first.saturated - later.counters.keys()) | later.saturated
    return PortFacts(**merged)  # type: ignore[arg-type]


AGGREGATION_NODE = "Mellanox Technologies Aggregation Node"
"""The NodeDesc of a SHARP aggregation node: an adapter inside a switch that no cable leads to."""


class DiscoveredCable(NamedTuple):
    """A cable as a tool saw it; `rate` is its text, empty where it could not be read."""

    a: PortId
    b: PortId
    rate: str


class DiscoveredDevice(NamedTuple):
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
class FabricDiscovery:
    """Every cable once and every device by GUID. `problems` says what could not be read; then it is `partial`.

    `facts` are what was said of single ports, `events` what a fabric manager reported, `temperatures` how warm devices
    themselves are (°C by GUID); many tools say none of them.
    """

    cables: Sequence[DiscoveredCable]
    devices: Mapping[str, DiscoveredDevice]
    problems: Sequence[str] = ()
    facts: Mapping[PortId, PortFacts] = field(default_factory=dict)
    events: Sequence[FabricEvent] = ()
    temperatures: Mapping[str, float] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether something of the fabric may be missing here, so that nothing may be concluded from absence."""
        return bool(self.problems)
