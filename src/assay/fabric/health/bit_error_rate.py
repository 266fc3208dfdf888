"""Which bit error ratio says how well a link is: after the error correction that its speed class has.

Bit error ratios as the registers of adapters and switches hold them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.fabric.discovery import PortFacts
from assay.fabric.link_rates_and_states import SPEEDS, parse_rate

JudgedRatio = Literal["symbol", "effective"]
FIRST_BY_SYMBOL = SPEEDS.index("HDR")
"""From HDR on, forward error correction is always on and symbol errors are what the application meets; EDR is judged by
its effective errors (ibdiagnet user manual, Bit Error Rate)."""


@dataclass(frozen=True, slots=True)
class BitErrorRate:
    """The ratio that counts for a port. `kind` names its limit: `symbol_ber`, `effective_ber`."""

    kind: JudgedRatio
    ratio: float


def find_judged_ratio(rate: str) -> JudgedRatio | None:
    """Return which ratio counts at a rate (`4xNDR`), None for a text that is no rate."""
    known = parse_rate(rate)
    if known is None:
        return None
    return "symbol" if known.speed >= FIRST_BY_SYMBOL else "effective"


def find_bit_error_rate(facts: PortFacts, rate: str = "") -> BitErrorRate | None:
    """Return the ratio that counts for a port at its rate, or at `rate` where it does not say; None if unread."""
    kind = find_judged_ratio(facts.rate or rate)
    if kind is None or kind not in facts.ber:
        return None
    return BitErrorRate(kind, facts.ber[kind])


NO_ERRORS = 1e-250
"""At and below this a ratio stands for no error at all: 15E-255 is the smallest that the registers can hold."""
LARGEST_EXPONENT = 255


def zero_if_no_errors(ratio: float) -> float:
    """Return a ratio, 0 for one that stands for no error."""
    return 0.0 if ratio <= NO_ERRORS else ratio


def decode_register(mantissa: int, exponent: int) -> float | None:
    """Return mantissa × 10^-exponent, None where the two are no ratio: a register that nothing was written to."""
    if not (mantissa or exponent) or exponent > LARGEST_EXPONENT:
        return None
    ratio = mantissa * 10.0**-exponent
    return zero_if_no_errors(ratio) if ratio <= 1 else None
