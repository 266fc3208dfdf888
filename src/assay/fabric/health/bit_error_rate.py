"""Which bit error ratio of a link its limits apply to, and how device registers hold a ratio.

A ratio counts after the error correction that the link's speed class has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.fabric.discovery import PortFacts
from assay.fabric.link_rates_and_states import SPEEDS, parse_rate

JudgedRatio = Literal["symbol", "effective"]
FIRST_BY_SYMBOL = SPEEDS.index("HDR")
"""From HDR on, forward error correction is always on, and the application meets symbol errors. EDR and slower links are
judged by their effective errors. Source: ibdiagnet user manual, Bit Error Rate."""


@dataclass(frozen=True, slots=True)
class BitErrorRate:
    """The ratio that a port is judged by. `kind` names its limit: `symbol_ber` or `effective_ber`."""

    kind: JudgedRatio
    ratio: float


def find_judged_ratio(rate: str) -> JudgedRatio | None:
    """Return which ratio a rate (`4xNDR`) is judged by, None for a text that is no rate."""
    parsed = parse_rate(rate)
    if parsed is None:
        return None
    return "symbol" if parsed.speed >= FIRST_BY_SYMBOL else "effective"


def find_bit_error_rate(facts: PortFacts, rate: str = "") -> BitErrorRate | None:
    """Return the ratio that a port is judged by, None if it was not read. `rate` is used if the port reports none."""
    kind = find_judged_ratio(facts.rate or rate)
    if kind is None or kind not in facts.ber:
        return None
    return BitErrorRate(kind, facts.ber[kind])


NO_ERRORS = 1e-250
"""A ratio of this or less means no error at all: 15E-255 is the smallest that the registers can hold."""
LARGEST_EXPONENT = 255


def zero_if_no_errors(ratio: float) -> float:
    """Return the ratio, or 0 for one that means no error."""
    return 0.0 if ratio <= NO_ERRORS else ratio


def decode_register(mantissa: int, exponent: int) -> float | None:
    """Return mantissa × 10^-exponent, None where the two are no ratio, as in a register that was never written."""
    if not (mantissa or exponent) or exponent > LARGEST_EXPONENT:
        return None
    ratio = mantissa * 10.0**-exponent
    return zero_if_no_errors(ratio) if ratio <= 1 else None
