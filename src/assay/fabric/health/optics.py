"""What a cable or transceiver says of itself, lane by lane, against what its maker allows."""

from __future__ import annotations

from dataclasses import dataclass

from assay.fabric.port_facts import PortFacts

IDENTITY = ("vendor", "part", "serial", "firmware", "technology")


@dataclass(frozen=True, slots=True)
class Optics:
    """The readings of one module. A list has one number a lane, and is empty where nothing was read.

    `temperature_c` and `voltage_mv` are None where the module does not say: copper cables measure nothing.
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


def optics_of(facts: PortFacts) -> Optics:
    """Return what a port's module said of itself."""
    module = facts.module
    return Optics(
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
    return tuple(float(one) for one in value) if isinstance(value, tuple | list) else ()
