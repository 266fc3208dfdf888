"""What a port is compared by: the readings of its module and link, which way is worse, and the limits that judge it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log10
from typing import Literal

from assay.fabric.health.ber import ber_of
from assay.fabric.port_facts import PortFacts

LEAST_BER = 1e-20
"""Below this a bit error ratio is a zero: tools write 15E-255."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of a port that its peers have too, and that may creep. `worse` is the direction that matters.

    `key` names it in evidence. `apart` and `drift` name the limits of the design: less than `apart` away from its peers
    is no matter, and neither is less than `drift` in a week; both are in `step`.
    """

    key: str
    name: str
    unit: str
    step: str
    worse: Literal[1, -1]
    apart: str
    drift: str
    of: Callable[[PortFacts, str], float | None]


def temperature(facts: PortFacts, _: str) -> float | None:
    """Return the module's temperature."""
    said = facts.module.get("temperature_c")
    return float(said) if isinstance(said, int | float) else None


def light(facts: PortFacts, _: str) -> float | None:
    """Return the light on the weakest lane."""
    lanes = facts.module.get("rx_power_dbm")
    return float(min(lanes)) if isinstance(lanes, tuple | list) and lanes else None


def bias(facts: PortFacts, _: str) -> float | None:
    """Return the current of the laser that needs most."""
    lanes = facts.module.get("bias_ma")
    return float(max(lanes)) if isinstance(lanes, tuple | list) and lanes else None


def ber_power(facts: PortFacts, rate: str) -> float | None:
    """Return the power of ten of the bit error ratio that counts at the link's rate."""
    found = ber_of(facts, rate)
    return log10(max(found.ratio, LEAST_BER)) if found else None


READINGS = (
    Reading(
        "temperature", "module temperature", "°C", "°C", 1,
        "module_temperature_apart", "module_temperature_drift", temperature,
    ),
    Reading("light", "received light", "dBm", "dB", -1, "rx_power_apart", "rx_power_drift", light),
    Reading("bias", "laser current", "mA", "mA", 1, "bias_apart", "bias_drift", bias),
    Reading("ber_power", "bit error ratio", "powers of ten", "powers of ten", 1, "ber_apart", "ber_drift", ber_power),
)  # fmt: skip
