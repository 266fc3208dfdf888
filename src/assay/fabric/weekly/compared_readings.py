"""The readings of a port that are compared with its peers and over time, with the limits that judge them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log10
from typing import Literal

from assay.fabric.discovery import PortFacts
from assay.fabric.health.bit_error_rate import find_bit_error_rate

MIN_BER = 1e-20
"""A smaller bit error ratio counts as this: a logarithm needs more than zero."""


@dataclass(frozen=True, slots=True)
class ComparedReading:
    """A reading that a port's peers have too, and that may drift.

    - `key` names it in evidence.
    - `worse` is the direction in which it gets worse: 1 up, -1 down.
    - `distance_limit` and `drift_limit` name limits of the design, both in `step`. A smaller distance from the peers,
      or a smaller drift in a week, is ignored.
    - `resolution`: the step in which tools print it. A smaller change is none.
    - `of` returns the reading from a port's facts and its designed rate, None if it was not read.
    """

    key: str
    name: str
    unit: str
    step: str
    worse: Literal[1, -1]
    distance_limit: str
    drift_limit: str
    resolution: float
    of: Callable[[PortFacts, str], float | None]


def read_module_temperature(facts: PortFacts, _: str) -> float | None:
    """Return the module's temperature in °C."""
    temperature = facts.module.get("temperature_c")
    return float(temperature) if isinstance(temperature, int | float) else None


def read_received_light(facts: PortFacts, _: str) -> float | None:
    """Return the light on the weakest lane in dBm."""
    lanes = facts.module.get("rx_power_dbm")
    return float(min(lanes)) if isinstance(lanes, tuple | list) and lanes else None


def read_laser_bias(facts: PortFacts, _: str) -> float | None:
    """Return the largest laser current of all lanes in mA."""
    lanes = facts.module.get("bias_ma")
    return float(max(lanes)) if isinstance(lanes, tuple | list) and lanes else None


def read_bit_error_exponent(facts: PortFacts, rate: str) -> float | None:
    """Return the power of ten of the bit error ratio that the link is judged by."""
    found = find_bit_error_rate(facts, rate)
    return log10(max(found.ratio, MIN_BER)) if found else None


def find_highest_fec_bin(facts: PortFacts, _: str) -> float | None:
    """Return the highest bin of the FEC histogram in which any block was counted: how many wrong symbols a block had.

    The correction of 200 and 400 Gb/s lanes repairs 15; what comes close is about to lose packets.
    """
    used = [number for number, count in enumerate(facts.fec_bins) if count]
    return float(used[-1]) if used else None


READINGS = (
    ComparedReading(
        "temperature", "module temperature", "°C", "°C", 1,
        "module_temperature_apart", "module_temperature_drift", 1.0, read_module_temperature,
    ),
    ComparedReading(
        "light", "received light", "dBm", "dB", -1,
        "rx_power_apart", "rx_power_drift", 0.1, read_received_light,
    ),
    ComparedReading(
        "bias", "laser current", "mA", "mA", 1,
        "bias_apart", "bias_drift", 0.1, read_laser_bias,
    ),
    ComparedReading(
        "ber_power", "bit error ratio", "powers of ten", "powers of ten", 1,
        "ber_apart", "ber_drift", 0.1, read_bit_error_exponent,
    ),
    ComparedReading(
        "fec_bin", "highest FEC bin", "wrong symbols", "count", 1,
        "fec_bin_apart", "fec_bin_drift", 1.0, find_highest_fec_bin,
    ),
)  # fmt: skip
