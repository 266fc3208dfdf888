"""What a port is compared by: the readings of its module and link, which way is worse, and the limits that judge it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log10
from typing import Literal

from assay.fabric.discovery import PortFacts
from assay.fabric.health.bit_error_rate import find_bit_error_rate

LEAST_BER = 1e-20
"""Below this a bit error ratio is a zero: tools write 15E-255."""


@dataclass(frozen=True, slots=True)
class ComparedReading:
    """One number of a port that its peers have too, and that may creep. `worse` is the direction that matters.

    `key` names it in evidence. `apart` and `drift` name the limits of the design: less than `apart` away from its peers
    is no matter, and neither is less than `drift` in a week; both are in `step`.
    """

    key: str
    name: str
    unit: str
    step: str
    worse: Literal[1, -1]
    distance_limit: str
    drift_limit: str
    of: Callable[[PortFacts, str], float | None]


def read_module_temperature(facts: PortFacts, _: str) -> float | None:
    """Return the module's temperature."""
    said = facts.module.get("temperature_c")
    return float(said) if isinstance(said, int | float) else None


def read_received_light(facts: PortFacts, _: str) -> float | None:
    """Return the light on the weakest lane."""
    lanes = facts.module.get("rx_power_dbm")
    return float(min(lanes)) if isinstance(lanes, tuple | list) and lanes else None


def read_laser_bias(facts: PortFacts, _: str) -> float | None:
    """Return the current of the laser that needs most."""
    lanes = facts.module.get("bias_ma")
    return float(max(lanes)) if isinstance(lanes, tuple | list) and lanes else None


def read_bit_error_exponent(facts: PortFacts, rate: str) -> float | None:
    """Return the power of ten of the bit error ratio that counts at the link's rate."""
    found = find_bit_error_rate(facts, rate)
    return log10(max(found.ratio, LEAST_BER)) if found else None


READINGS = (
    ComparedReading(
        "temperature", "module temperature", "°C", "°C", 1,
        "module_temperature_apart", "module_temperature_drift", read_module_temperature,
    ),
    ComparedReading("light", "received light", "dBm", "dB", -1, "rx_power_apart", "rx_power_drift", read_received_light),
    ComparedReading("bias", "laser current", "mA", "mA", 1, "bias_apart", "bias_drift", read_laser_bias),
    ComparedReading("ber_power", "bit error ratio", "powers of ten", "powers of ten", 1, "ber_apart", "ber_drift", read_bit_error_exponent),
)  # fmt: skip
