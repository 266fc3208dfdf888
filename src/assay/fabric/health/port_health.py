"""The health of a designed port: error rates per hour, bit error ratio, link downs, and its transceiver's readings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.fabric.discovery import PortFacts
from assay.fabric.health import counters
from assay.fabric.health.counters import BitErrorRate, LinkDowns, PortGrowth, count_link_downs, find_bit_error_rate
from assay.fabric.health.stored_scan import FabricScan
from assay.model.specs.fabric.cable import Cable, CableEnd

IDENTITY = ("vendor", "part", "serial", "firmware", "technology")


@dataclass(frozen=True, slots=True)
class TransceiverReadings:
    """The readings of one module. Power and bias have one number a lane, none where they were not read.

    `temperature_c` and `voltage_mv` are None where the module does not report them, as copper cables do not.
    """

    temperature_c: float | None = None
    voltage_mv: float | None = None
    rx_power_dbm: tuple[float, ...] = ()
    tx_power_dbm: tuple[float, ...] = ()
    bias_ma: tuple[float, ...] = ()
    vendor: str = ""
    part: str = ""
    serial: str = ""
    firmware: str = ""
    technology: str = ""


def read_transceiver(facts: PortFacts) -> TransceiverReadings:
    """Return the readings of a port's module."""
    module = facts.module
    return TransceiverReadings(
        _number(module.get("temperature_c")),
        _number(module.get("voltage_mv")),
        _lanes(module.get("rx_power_dbm")),
        _lanes(module.get("tx_power_dbm")),
        _lanes(module.get("bias_ma")),
        *(str(module.get(name, "")) for name in IDENTITY),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _lanes(value: object) -> tuple[float, ...]:
    return tuple(float(lane) for lane in value) if isinstance(value, tuple | list) else ()


@dataclass(frozen=True, slots=True)
class PortHealth:
    """A port of a designed cable: its place, the far end, the designed rate, its facts and its counter growth.

    Rates are per hour, as `PortGrowth.per_hour` counts them.
    """

    end: CableEnd
    far: CableEnd
    rate: str
    facts: PortFacts
    growth: PortGrowth

    @property
    def symbol_errors(self) -> float:
        """Symbol errors per hour."""
        return self.growth.per_hour(counters.SYMBOL)

    @property
    def recoveries(self) -> float:
        """How often per hour the link recovered from errors without going down."""
        return self.growth.per_hour(counters.RECOVERY)

    @property
    def receive_errors(self) -> float:
        """Packets per hour that arrived broken or broke here: the largest of the counters in `LINK_ERRORS`."""
        return max(self.growth.per_hour(name) for name in counters.LINK_ERRORS)

    @property
    def discards(self) -> float:
        """Packets per hour that could not leave through this port, because it was congested or down."""
        return self.growth.per_hour(counters.DISCARDS)

    @property
    def forbidden(self) -> float:
        """Packets per hour that were dropped because their partition may not pass this port."""
        return sum(self.growth.per_hour(name) for name in counters.CONSTRAINTS)

    @property
    def management_drops(self) -> float:
        """Management packets per hour that were dropped because buffers were full."""
        return self.growth.per_hour(counters.VL15)

    @property
    def ber(self) -> BitErrorRate | None:
        """The bit error ratio that the port is judged by, None where it was not read."""
        return find_bit_error_rate(self.facts, self.rate)

    @property
    def optics(self) -> TransceiverReadings:
        """The readings of the module in this port."""
        return read_transceiver(self.facts)

    @property
    def stuck(self) -> tuple[str, ...]:
        """The counters that were at their maximum before, so that they show nothing until they are cleared."""
        return tuple(sorted(name for name, growth in self.growth.counters.items() if growth.stuck))

    def downs(self, boots: int = 0) -> LinkDowns:
        """Return how often the link went down. The `boots` of its node explain some of that."""
        return count_link_downs(self.growth, boots)


def list_port_health(cables: Iterable[Cable], scan: FabricScan) -> list[PortHealth]:
    """Return the health of both ports of each cable."""
    return [
        PortHealth(end, far, cable.rate, scan.find_port_facts(end.port_id), scan.find_port_growth(end.port_id))
        for cable in cables
        for end, far in ((cable.a, cable.b), (cable.b, cable.a))
    ]
