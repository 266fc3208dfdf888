"""What tools say of one port: its state, its counters, its bit error ratios, the module plugged into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from assay.model.cable import Port

ModuleValue = str | float | tuple[float, ...]

SATURATION: Mapping[str, int] = {
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
    printed at the port. `pkeys` are the P_Keys of its partition table, 16 bits each (`assay.model.partitions.FULL`);
    None where nobody read that table, whole.
    """

    port: Port
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
    ports: tuple[Port, ...] = ()
    serial: str = ""


def classic_saturated(counters: Mapping[str, int]) -> frozenset[str]:
    """Return which of these classic counters stand at their end, where more errors no longer show."""
    return frozenset(name for name, count in counters.items() if name in SATURATION and count >= SATURATION[name])


def joined(facts: Iterable[PortFacts]) -> dict[Port, PortFacts]:
    """Return one PortFacts a port. Where two tools speak of the same thing, the later one is believed."""
    by_port: dict[Port, PortFacts] = {}
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
